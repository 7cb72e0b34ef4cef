"""Checks of each asset by itself."""

from __future__ import annotations

from servo.errors import InvalidValue
from servo.model.asset_key import AssetKey
from servo.v1 import code_pb2, common_pb2, manifest_pb2, state_pb2

from . import values
from .context import Faults

_MAX_ATTEMPTS_MAX = 1_000
_LIST_ITEMS_MAX = 100
_SECRET_PROVIDERS = ("env", "gcp-secret-manager")


def check(manifest: manifest_pb2.Manifest, faults: Faults) -> dict[str, int]:
    """Checks each asset; returns their indexes by key."""
    names: dict[str, int] = {}
    for index, asset in enumerate(manifest.assets):
        at = f"assets[{index}]"
        try:
            AssetKey.parse(asset.key)
        except InvalidValue as fault:
            faults.add(f"{at}.key", str(fault))
        else:
            if asset.key in names:
                faults.add(f"{at}.key", f"`{asset.key}` is already declared at assets[{names[asset.key]}]; keep one")
            names.setdefault(asset.key, index)
        _check_asset(faults, at, asset, manifest)
    return names


def check_code_ref(faults: Faults, path: str, code: code_pb2.CodeRef, manifest: manifest_pb2.Manifest) -> None:
    if code.artifact_digest:
        values.digest(faults, f"{path}.artifact_digest", code.artifact_digest)
    match code.WhichOneof("target"):
        case None:
            faults.add(path, "has no target; name an entry_point or a handler")
        case "handler":
            values.name(faults, f"{path}.handler.name", code.handler.name)
            values.config(faults, f"{path}.handler.config_json", code.handler.config_json)
        case _:
            values.name(faults, f"{path}.entry_point.module", code.entry_point.module)
            values.name(faults, f"{path}.entry_point.function", code.entry_point.function)
            if not code.artifact_digest and not manifest.HasField("artifact"):
                faults.add(path, "names a function, but the manifest has no artifact; add one or use a handler")


def _check_asset(faults: Faults, at: str, asset: manifest_pb2.AssetDefinition, manifest: manifest_pb2.Manifest) -> None:
    values.short(faults, f"{at}.description", asset.description, values.PROSE_BYTES_MAX)
    for field in ("pool", "code_version", "io"):
        values.short(faults, f"{at}.{field}", getattr(asset, field), values.NAME_BYTES_MAX)
    values.config(faults, f"{at}.config_json", asset.config_json)
    _check_words(faults, at, asset)
    _check_code(faults, at, asset, manifest)
    _check_checks(faults, at, asset)
    _check_secrets(faults, at, asset)
    if asset.HasField("retry"):
        _check_retry(faults, f"{at}.retry", asset.retry)
    for field in ("execution", "dispatch_ack", "heartbeat"):
        values.duration(faults, f"{at}.timeouts.{field}", asset.timeouts)
    if asset.HasField("freshness"):
        values.duration(faults, f"{at}.freshness.max_age", asset.freshness)
        values.zone(faults, f"{at}.freshness.time_zone", asset.freshness.time_zone)
        if asset.freshness.deadline_cron:
            values.cron(faults, f"{at}.freshness.deadline_cron", asset.freshness.deadline_cron)


def _check_words(faults: Faults, at: str, asset: manifest_pb2.AssetDefinition) -> None:
    capabilities = asset.resources.capabilities
    for field, count in (
        ("owners", len(asset.owners)),
        ("tags", len(asset.tags)),
        ("resources.capabilities", len(capabilities)),
    ):
        if count > _LIST_ITEMS_MAX:
            faults.add(f"{at}.{field}", f"has {count} entries; at most {_LIST_ITEMS_MAX} are allowed")
    for index, owner in enumerate(asset.owners):
        values.name(faults, f"{at}.owners[{index}]", owner)
    for key, value in sorted(asset.tags.items()):
        values.name(faults, f"{at}.tags", key)
        values.short(faults, f"{at}.tags[{key[:32]}]", value, values.NAME_BYTES_MAX)
    for index, capability in enumerate(capabilities):
        values.name(faults, f"{at}.resources.capabilities[{index}]", capability)


def _check_code(faults: Faults, at: str, asset: manifest_pb2.AssetDefinition, manifest: manifest_pb2.Manifest) -> None:
    path = f"{at}.code"
    if not asset.HasField("code"):
        if not asset.source and not asset.made_by:
            faults.add(path, "is missing; say how the asset is made, or call it a source")
    elif asset.source:
        faults.add(path, "a source is made elsewhere; leave its code out")
    elif asset.made_by:
        faults.add(path, "the asset in made_by brings the code; leave it out here")
    else:
        check_code_ref(faults, path, asset.code, manifest)


def _check_checks(faults: Faults, at: str, asset: manifest_pb2.AssetDefinition) -> None:
    seen: set[str] = set()
    for index, check in enumerate(asset.checks):
        path = f"{at}.checks[{index}]"
        values.name(faults, f"{path}.name", check.name)
        if check.name in seen:
            faults.add(f"{path}.name", f"`{check.name}` appears twice in this asset; keep one")
        seen.add(check.name)
        if check.WhichOneof("spec") is None:
            faults.add(path, "does not say what is checked; give it a spec")
        values.listed(faults, f"{path}.severity", check)
        values.listed(faults, f"{path}.phase", check)
        values.duration(faults, f"{path}.timeout", check)


def _check_secrets(faults: Faults, at: str, asset: manifest_pb2.AssetDefinition) -> None:
    seen: set[str] = set()
    for index, secret in enumerate(asset.secrets):
        path = f"{at}.secrets[{index}]"
        values.name(faults, f"{path}.name", secret.name)
        values.name(faults, f"{path}.path", secret.path)
        if secret.name in seen:
            faults.add(f"{path}.name", "appears twice in this asset; keep one")
        seen.add(secret.name)
        if secret.provider not in _SECRET_PROVIDERS:
            faults.add(f"{path}.provider", f"is not known; write {' or '.join(_SECRET_PROVIDERS)}")


def _check_retry(faults: Faults, path: str, retry: common_pb2.RetryPolicy) -> None:
    if retry.max_attempts > _MAX_ATTEMPTS_MAX:
        faults.add(f"{path}.max_attempts", f"is {retry.max_attempts}; at most {_MAX_ATTEMPTS_MAX} are allowed")
    values.listed(faults, f"{path}.backoff", retry)
    values.duration(faults, f"{path}.initial_delay", retry, zero_is_fine=True)
    values.duration(faults, f"{path}.max_delay", retry, zero_is_fine=True)
    known = set(state_pb2.ErrorCategory.values()) - {0}
    for index, category in enumerate(retry.retry_on_categories):
        if category not in known:
            faults.add(f"{path}.retry_on_categories[{index}]", "is not an error category")
    for field in ("retry_on_types", "never_on_types"):
        for index, name in enumerate(getattr(retry, field)):
            values.name(faults, f"{path}.{field}[{index}]", name)
