//! ListRuns: the runs of a workspace by age.

use std::collections::HashMap;

use prost::Message as _;
use servo_mesh::paging::page_size;
use servo_mesh::{Error, Reason};
use servo_model::states::RunState;
use servo_proto::v1 as pb;
use servo_store::sqlx::FromRow;
use servo_store::{StoreError, TenantTx, Timestamp, query};

use super::run_filter::Wanted;
use super::{Scheduler, answer, wait};
use crate::shards::all_shards;
use crate::wire::{self, RunRecord};

pub(super) async fn list_runs(
    scheduler: &Scheduler,
    request: pb::ListRunsRequest,
) -> Result<pb::ListRunsResponse, Error> {
    let wanted = Wanted::parse(&request.filter)?;
    wait::for_event(scheduler, &request.wait_for_event_id).await?;
    let order = Order::parse(&request.order_by)?;
    let size = page_size(request.page_size, answer::PAGE_DEFAULT, answer::PAGE_MAX)?;
    let list = [
        "runs",
        &request.tenant,
        &request.workspace,
        &request.order_by,
        &request.filter,
    ];
    let begin = match scheduler.tokens.read(&list, &request.page_token)? {
        None => order.begin(),
        Some(cursor) => place(&cursor)?,
    };
    let mut tx = scheduler
        .store
        .requests()
        .begin(&request.tenant)
        .await
        .map_err(answer::store)?;
    let most = if wanted.is_all() { size } else { LOOKED_AT_MAX };
    let scope = (request.tenant.as_str(), request.workspace.as_str());
    let rows = look_at(&mut tx, scope, order, begin, (&wanted, most))
        .await
        .map_err(answer::store)?;
    let page = Page::cut(rows, &wanted, (size, most));
    let counts = counts(&mut tx, &page.rows).await?;
    tx.commit().await.map_err(answer::store)?;
    let next = page.next.map(|(at, number)| format!("{at}.{number}"));
    let none = Vec::new();
    let show =
        |row: &RunRecord| wire::run_to_proto(row, counts.get(&row.run_number).unwrap_or(&none));
    Ok(pb::ListRunsResponse {
        runs: page.rows.iter().map(show).collect(),
        next_page_token: next.map_or_else(String::new, |next| scheduler.tokens.write(&list, &next)),
    })
}

/// How many rows are looked at for a page whose filter most of them do not fit.
const LOOKED_AT_MAX: usize = 2_000;

/// States from this one on are ends; the index of open runs has those before it.
const FIRST_END: i16 = RunState::Succeeded.code();

/// What a page holds at most, but for one run that is larger: with all around it, it stays below what a message may be.
const PAGE_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Later than every run: the year 9999.
const NEWEST: i64 = 253_370_764_800_000_000;

/// When a run was accepted, and its number.
type Place = (i64, i64);

#[derive(Debug, Clone, Copy)]
enum Order {
    NewestFirst,
    OldestFirst,
}

impl Order {
    fn parse(order_by: &str) -> Result<Order, Error> {
        match order_by {
            "" | "create_time desc" => Ok(Order::NewestFirst),
            "create_time" => Ok(Order::OldestFirst),
            other => {
                let message =
                    format!("`{other}` is not known; write `create_time desc` or `create_time`");
                Err(Error::bad_field("order_by", message))
            }
        }
    }

    fn begin(self) -> Place {
        match self {
            Order::NewestFirst => (NEWEST, i64::MAX),
            Order::OldestFirst => (0, 0),
        }
    }

    fn statement(self, open: bool) -> &'static str {
        match (self, open) {
            (Order::NewestFirst, false) => include_str!("../store/list_runs.sql"),
            (Order::NewestFirst, true) => include_str!("../store/list_open_runs.sql"),
            (Order::OldestFirst, false) => include_str!("../store/list_runs_oldest_first.sql"),
            (Order::OldestFirst, true) => include_str!("../store/list_open_runs_oldest_first.sql"),
        }
    }
}

#[derive(Debug, FromRow)]
struct Listed {
    #[sqlx(flatten)]
    run: RunRecord,
    /// How many were looked at, whether they are told or not.
    looked_at: i64,
}

/// What may be on the page, out of `most` runs and one more.
async fn look_at(
    tx: &mut TenantTx,
    (tenant, workspace): (&str, &str),
    order: Order,
    (created_at, number): Place,
    (wanted, most): (&Wanted, usize),
) -> Result<Vec<Listed>, StoreError> {
    let states = wanted.states();
    let open = states
        .as_ref()
        .is_some_and(|states| states.iter().all(|state| *state < FIRST_END));
    let select = query(order.statement(open))
        .bind(tenant)
        .bind(workspace)
        .bind(Timestamp::from_unix_us(created_at))
        .bind(number)
        .bind(states)
        .bind(most as i64 + 1);
    tx.all(if open {
        select.bind(all_shards())
    } else {
        select
    })
    .await
}

struct Page {
    rows: Vec<RunRecord>,
    /// Behind which the next begins, if there may be one.
    next: Option<Place>,
}

impl Page {
    fn cut(mut listed: Vec<Listed>, wanted: &Wanted, (size, most): (usize, usize)) -> Page {
        let mut more = listed
            .first()
            .is_some_and(|first| first.looked_at > most as i64);
        if more {
            listed.pop();
        }
        let (mut rows, mut bytes, mut last) = (Vec::new(), 0, None);
        for Listed { run, .. } in listed {
            let shown = wire::run_to_proto(&run, &[]);
            let fits = wanted.fits(&shown);
            bytes += if fits { shown.encoded_len() } else { 0 };
            if rows.len() == size || !rows.is_empty() && bytes > PAGE_BYTES_MAX {
                more = true;
                break;
            }
            last = Some((run.created_at.unix_us(), run.run_number));
            rows.extend(fits.then_some(run));
        }
        Page {
            rows,
            next: last.filter(|_| more),
        }
    }
}

/// Tasks by state, of the runs that have not ended.
async fn counts(
    tx: &mut TenantTx,
    rows: &[RunRecord],
) -> Result<HashMap<i64, Vec<(i16, i64)>>, Error> {
    let open: Vec<i64> = rows
        .iter()
        .filter(|row| row.counts.is_none())
        .map(|row| row.run_number)
        .collect();
    let mut counts: HashMap<i64, Vec<(i16, i64)>> = HashMap::new();
    if open.is_empty() {
        return Ok(counts);
    }
    let count = query(include_str!("../store/count_tasks_of.sql")).bind(open);
    let counted: Vec<(i64, i16, i64)> = tx.all(count).await.map_err(answer::store)?;
    for (number, state, count) in counted {
        counts.entry(number).or_default().push((state, count));
    }
    Ok(counts)
}

fn place(text: &str) -> Result<Place, Error> {
    let parsed = text
        .split_once('.')
        .and_then(|(at, number)| Some((at.parse().ok()?, number.parse().ok()?)));
    parsed.ok_or_else(|| {
        Error::new(
            Reason::InvalidPageToken,
            "page_token is not one that ListRuns gave; begin anew",
        )
    })
}

#[cfg(test)]
mod tests {
    use servo_local::TestDatabase;
    use servo_model::Service;
    use servo_proto::v1::event::Body;
    use servo_store::sqlx::{self, Connection, PgConnection};
    use servo_store::{DatabaseConfig, Store};
    use uuid::Uuid;

    use super::*;

    /// Runs of one workspace in these states, oldest first.
    async fn store_with_runs(database: &TestDatabase, states: &[RunState]) -> Store {
        let config = DatabaseConfig::new(database.service_url(), database.password().to_owned());
        let store = Store::connect(Service::Scheduler, &config).unwrap();
        let insert = "INSERT INTO scheduler.runs (tenant, workspace, run_key, state, created_at, changed_at, run_id, \
                          run_number, shard, reason, version, generation, request, request_event_id) \
                      SELECT 'acme', 'prod', 'k' || number, state, now() + number * interval '1 second', now(), \
                          gen_random_uuid(), number, number % 64, 1, 1, 1, '', gen_random_uuid() \
                      FROM unnest($1::smallint[]) WITH ORDINALITY AS r (state, number)";
        let states: Vec<i16> = states.iter().map(|state| state.code()).collect();
        store
            .loops()
            .execute(query(insert).bind(states))
            .await
            .unwrap();
        store
    }

    /// The numbers of the runs on each page, with two looked at for each.
    async fn pages(store: &Store, order: Order, filter: &str) -> Vec<Vec<i64>> {
        let wanted = Wanted::parse(filter).unwrap();
        let mut tx = store.requests().begin("acme").await.unwrap();
        let (mut pages, mut begin) = (Vec::new(), order.begin());
        loop {
            let listed = look_at(&mut tx, ("acme", "prod"), order, begin, (&wanted, 2))
                .await
                .unwrap();
            let page = Page::cut(listed, &wanted, (2, 2));
            pages.push(page.rows.iter().map(|row| row.run_number).collect());
            let Some(next) = page.next else { return pages };
            begin = next;
        }
    }

    #[tokio::test]
    async fn a_page_looks_at_so_many_runs_however_rare_the_state_is() {
        use RunState::{Failed, Pending, Running, Succeeded};
        let database = TestDatabase::create().await.unwrap();
        let states = [
            Pending, Failed, Succeeded, Succeeded, Succeeded, Running, Failed,
        ];
        let store = store_with_runs(&database, &states).await;
        let newest = async |filter: &str| pages(&store, Order::NewestFirst, filter).await;
        let oldest = async |filter: &str| pages(&store, Order::OldestFirst, filter).await;
        assert_eq!(
            newest("").await,
            [vec![7, 6], vec![5, 4], vec![3, 2], vec![1]]
        );
        assert_eq!(
            newest("state = FAILED").await,
            [vec![7], vec![], vec![2], vec![]]
        );
        assert_eq!(
            oldest("state = FAILED").await,
            [vec![2], vec![], vec![], vec![7]]
        );
        // What is open is found at once.
        assert_eq!(newest("state = PENDING").await, [[1]]);
        assert_eq!(oldest("state = RUNNING").await, [[6]]);
    }

    #[tokio::test]
    async fn open_runs_are_found_among_the_open_ones() {
        let database = TestDatabase::create().await.unwrap();
        let mut states = vec![RunState::Succeeded; 20_000];
        states.push(RunState::Pending);
        let store = store_with_runs(&database, &states).await;
        let mut admin = PgConnection::connect(&database.admin_url()).await.unwrap();
        sqlx::query("ANALYZE scheduler.runs")
            .execute(&mut admin)
            .await
            .unwrap();
        let mut tx = store.requests().begin("acme").await.unwrap();
        let explain = query(concat!(
            "EXPLAIN ",
            include_str!("../store/list_open_runs.sql")
        ));
        let explain = explain
            .bind("acme")
            .bind("prod")
            .bind(Timestamp::from_unix_us(NEWEST))
            .bind(i64::MAX);
        let explain = explain.bind(vec![1_i16]).bind(51_i64).bind(all_shards());
        let lines: Vec<(String,)> = tx.all(explain).await.unwrap();
        assert!(
            lines.iter().any(|(line,)| line.contains("runs_open")),
            "{lines:#?}"
        );
    }

    fn large(number: i64, mebibytes: usize) -> Listed {
        let spec = pb::RunSpec {
            config_json: "x".repeat(mebibytes << 20),
            ..Default::default()
        };
        let request = pb::RunRequested {
            spec: Some(spec),
            ..Default::default()
        };
        let event = pb::Event {
            version: 1,
            trace: None,
            body: Some(Body::RunRequested(request)),
        };
        let run = RunRecord {
            run_id: Uuid::nil(),
            run_number: number,
            state: RunState::Running.code(),
            reason: 1,
            version: 1,
            request: event.encode_to_vec(),
            plan_id: None,
            plan_fingerprint: None,
            deployment_id: None,
            counts: None,
            error: None,
            created_at: Timestamp::from_unix_us(number),
            started_at: None,
            ended_at: None,
            deadline: None,
            set_aside: None,
            flagged: false,
        };
        Listed { run, looked_at: 3 }
    }

    #[test]
    fn a_page_ends_before_it_is_too_large_to_be_sent() {
        let check = |mebibytes: [usize; 3], shown: usize, next: Option<Place>| {
            let listed = (1..)
                .zip(mebibytes)
                .map(|(number, size)| large(number, size))
                .collect();
            let page = Page::cut(listed, &Wanted::parse("").unwrap(), (10, 10));
            assert_eq!((page.rows.len(), page.next), (shown, next), "{mebibytes:?}");
        };
        check([1, 1, 0], 3, None);
        check([1, 1, 2], 2, Some((2, 2)));
        check([4, 0, 0], 1, Some((1, 1)));
    }
}
