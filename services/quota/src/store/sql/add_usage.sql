-- Adds sums of usage. Sums are limited below the maximum of their type, so that no reported value
-- can make the loop fail. Run by store::usage::add.
INSERT INTO quota.usage AS known
SELECT * FROM unnest($1::text[], $2::timestamptz[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[],
    $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[],
    $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[])
ON CONFLICT (tenant, hour, workspace, asset, pool, currency) DO UPDATE
SET
    attempts = known.attempts + excluded.attempts,
    slot_ms = least(known.slot_ms::numeric + excluded.slot_ms, 9e18)::bigint,
    cpu_ms = least(known.cpu_ms::numeric + excluded.cpu_ms, 9e18)::bigint,
    memory_mb_ms = least(known.memory_mb_ms::numeric + excluded.memory_mb_ms, 9e18)::bigint,
    gpu_ms = least(known.gpu_ms::numeric + excluded.gpu_ms, 9e18)::bigint,
    memory_peak_bytes = greatest(known.memory_peak_bytes, excluded.memory_peak_bytes),
    read_bytes = least(known.read_bytes::numeric + excluded.read_bytes, 9e18)::bigint,
    written_bytes = least(known.written_bytes::numeric + excluded.written_bytes, 9e18)::bigint,
    egress_bytes = least(known.egress_bytes::numeric + excluded.egress_bytes, 9e18)::bigint,
    compute_pico = least(known.compute_pico::numeric + excluded.compute_pico, 9e18)::bigint,
    storage_pico = least(known.storage_pico::numeric + excluded.storage_pico, 9e18)::bigint,
    network_pico = least(known.network_pico::numeric + excluded.network_pico, 9e18)::bigint,
    external_pico = least(known.external_pico::numeric + excluded.external_pico, 9e18)::bigint
