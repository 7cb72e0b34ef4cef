//! ListRuns: the runs of a workspace by age.

use std::collections::HashMap;

use prost::Message as _;
use servo_mesh::Error;
use servo_mesh::filter::{Filter, TimeRange};
use servo_model::Timestamp;
use servo_proto::v1 as pb;
use servo_store::TenantTx;

use super::Scheduler;
use super::support::{errors, pages, parse, wait};
use crate::reads::filters::{self, run_states};
use crate::store::runs::{self, ListedRun, RunCursor, RunOrder, RunRecord};
use crate::store::tasks;
use crate::wire;

/// How many rows a page examines when its filter excludes most of them.
const EXAMINED_MAX: usize = 2_000;

/// The size of a page, unless a single run is larger. With the rest of the response it stays below
/// the message limit.
const PAGE_BYTES_MAX: usize = 3 * 1024 * 1024;

pub(super) async fn list_runs(
    scheduler: &Scheduler,
    request: pb::ListRunsRequest,
) -> Result<pb::ListRunsResponse, Error> {
    let tenant = parse::tenant(&request.tenant)?;
    let filter = Filter::parse(&request.filter, &filters::RUNS)?;
    wait::for_event(scheduler, &request.wait_for_event_id).await?;
    let order = parse_order(&request.order_by)?;
    let size = pages::size(request.page_size)?;
    let list = [
        "runs",
        &request.tenant,
        &request.workspace,
        &request.order_by,
        &request.filter,
    ];
    let cursor = match scheduler.tokens.read(&list, &request.page_token)? {
        None => first_cursor(order),
        Some(cursor) => parse_cursor(&cursor)?,
    };
    let mut tx = scheduler
        .reads
        .store
        .requests()
        .begin(&tenant)
        .await
        .map_err(errors::store)?;
    let examined = if filter.is_all() { size } else { EXAMINED_MAX };
    let scope = (&tenant, request.workspace.as_str());
    let rows = runs::list(
        &mut tx,
        scope,
        order,
        cursor,
        run_states(&filter),
        examined + 1,
    )
    .await
    .map_err(errors::store)?;
    let page = Page::new(rows, &filter, (size, examined));
    let counts = count_tasks(&mut tx, &page.rows).await?;
    tx.commit().await.map_err(errors::store)?;
    let next = page
        .next
        .map(|(at, number)| format!("{}.{number}", at.unix_us()));
    let none = Vec::new();
    let to_proto =
        |row: &RunRecord| wire::run_to_proto(row, counts.get(&row.run_number).unwrap_or(&none));
    Ok(pb::ListRunsResponse {
        runs: page.rows.iter().map(to_proto).collect(),
        next_page_token: next.map_or_else(String::new, |next| scheduler.tokens.write(&list, &next)),
    })
}

fn parse_order(order_by: &str) -> Result<RunOrder, Error> {
    match order_by {
        "" | "create_time desc" => Ok(RunOrder::NewestFirst),
        "create_time" => Ok(RunOrder::OldestFirst),
        other => {
            let message =
                format!("`{other}` is not supported; write `create_time desc` or `create_time`");
            Err(Error::bad_field("order_by", message))
        }
    }
}

fn first_cursor(order: RunOrder) -> RunCursor {
    match order {
        RunOrder::NewestFirst => (TimeRange::ALL.until, i64::MAX),
        RunOrder::OldestFirst => (Timestamp::UNIX_EPOCH, 0),
    }
}

struct Page {
    rows: Vec<RunRecord>,
    /// The cursor of the next page, if there may be one.
    next: Option<RunCursor>,
}

impl Page {
    fn new(
        mut listed: Vec<ListedRun>,
        filter: &Filter<pb::Run>,
        (size, examined): (usize, usize),
    ) -> Page {
        let mut more = listed
            .first()
            .is_some_and(|first| first.examined > examined as i64);
        if more {
            listed.pop();
        }
        let (mut rows, mut bytes, mut last) = (Vec::new(), 0, None);
        for ListedRun { run, .. } in listed {
            let shown = wire::run_to_proto(&run, &[]);
            let matches = filter.matches(&shown);
            bytes += if matches { shown.encoded_len() } else { 0 };
            if rows.len() == size || !rows.is_empty() && bytes > PAGE_BYTES_MAX {
                more = true;
                break;
            }
            last = Some((run.created_at, run.run_number));
            rows.extend(matches.then_some(run));
        }
        Page {
            rows,
            next: last.filter(|_| more),
        }
    }
}

/// Counts the tasks by state of the runs whose row does not store the counts.
async fn count_tasks(
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
    let counted = tasks::count_by_run_and_state(tx, open)
        .await
        .map_err(errors::store)?;
    for (number, state, count) in counted {
        counts.entry(number).or_default().push((state, count));
    }
    Ok(counts)
}

fn parse_cursor(text: &str) -> Result<RunCursor, Error> {
    let parsed = text
        .split_once('.')
        .and_then(|(at, number)| Some((pages::cursor_time(at)?, number.parse().ok()?)));
    parsed.ok_or_else(|| errors::bad_page_token("ListRuns"))
}

#[cfg(test)]
mod tests {
    use servo_local::TestDatabase;
    use servo_model::Service;
    use servo_model::states::RunState;
    use servo_proto::v1::event::Body;
    use servo_store::sqlx::{self, Connection, PgConnection};
    use servo_store::{DatabaseConfig, Store, query};
    use uuid::Uuid;

    use super::*;
    use crate::store::shards::all_shards;

    /// Inserts runs of one workspace in these states, oldest first.
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

    /// The numbers of the runs on each page, with two runs examined per page.
    async fn pages(store: &Store, order: RunOrder, text: &str) -> Vec<Vec<i64>> {
        let filter = Filter::parse(text, &filters::RUNS).unwrap();
        let tenant = "acme".parse().unwrap();
        let mut tx = store.requests().begin(&tenant).await.unwrap();
        let (mut pages, mut cursor) = (Vec::new(), first_cursor(order));
        loop {
            let states = run_states(&filter);
            let listed = runs::list(&mut tx, (&tenant, "prod"), order, cursor, states, 3)
                .await
                .unwrap();
            let page = Page::new(listed, &filter, (2, 2));
            pages.push(page.rows.iter().map(|row| row.run_number).collect());
            let Some(next) = page.next else { return pages };
            cursor = next;
        }
    }

    #[tokio::test]
    async fn a_page_examines_a_bounded_number_of_runs() {
        use RunState::{Failed, Pending, Running, Succeeded};
        let database = TestDatabase::create().await.unwrap();
        let states = [
            Pending, Failed, Succeeded, Succeeded, Succeeded, Running, Failed,
        ];
        let store = store_with_runs(&database, &states).await;
        let newest = async |filter: &str| pages(&store, RunOrder::NewestFirst, filter).await;
        let oldest = async |filter: &str| pages(&store, RunOrder::OldestFirst, filter).await;
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
        // Open runs are found by their index.
        assert_eq!(newest("state = PENDING").await, [[1]]);
        assert_eq!(oldest("state = RUNNING").await, [[6]]);
    }

    #[tokio::test]
    async fn open_runs_are_read_by_the_index_of_open_runs() {
        let database = TestDatabase::create().await.unwrap();
        let mut states = vec![RunState::Succeeded; 20_000];
        states.push(RunState::Pending);
        let store = store_with_runs(&database, &states).await;
        let mut admin = PgConnection::connect(&database.admin_url()).await.unwrap();
        sqlx::query("ANALYZE scheduler.runs")
            .execute(&mut admin)
            .await
            .unwrap();
        let mut tx = store
            .requests()
            .begin(&"acme".parse().unwrap())
            .await
            .unwrap();
        let explain = query(concat!(
            "EXPLAIN ",
            include_str!("../store/list_open_runs.sql")
        ));
        let explain = explain
            .bind("acme")
            .bind("prod")
            .bind(TimeRange::ALL.until)
            .bind(i64::MAX);
        let explain = explain.bind(vec![1_i16]).bind(51_i64).bind(all_shards());
        let lines: Vec<(String,)> = tx.all(explain).await.unwrap();
        assert!(
            lines.iter().any(|(line,)| line.contains("runs_open")),
            "{lines:#?}"
        );
    }

    fn large(number: i64, mebibytes: usize) -> ListedRun {
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
        ListedRun { run, examined: 3 }
    }

    #[test]
    fn a_page_ends_before_it_exceeds_the_message_size() {
        let check = |mebibytes: [usize; 3], shown: usize, next: Option<RunCursor>| {
            let listed = (1..)
                .zip(mebibytes)
                .map(|(number, size)| large(number, size))
                .collect();
            let page = Page::new(
                listed,
                &Filter::parse("", &filters::RUNS).unwrap(),
                (10, 10),
            );
            assert_eq!((page.rows.len(), page.next), (shown, next), "{mebibytes:?}");
        };
        check([1, 1, 0], 3, None);
        check([1, 1, 2], 2, Some((Timestamp::from_unix_us(2), 2)));
        check([4, 0, 0], 1, Some((Timestamp::from_unix_us(1), 1)));
    }
}
