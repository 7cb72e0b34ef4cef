use servo_mesh::Reason;
use servo_proto::v1::{
    Budget, BudgetAction, BudgetPeriod, CreateBudgetRequest, DeleteBudgetRequest, GetBudgetRequest,
    GetPricesRequest, ListBudgetsRequest, PriceList, UpdateBudgetRequest, UpdatePricesRequest,
};

use crate::support::{PLATFORM, TENANT, World, by, by_user, new_request_id, refused};

pub(crate) fn prices(tenant: &str, currency: &str, cpu_hour_micros: u64) -> UpdatePricesRequest {
    UpdatePricesRequest {
        tenant: tenant.into(),
        request_id: new_request_id(),
        prices: Some(PriceList {
            currency: currency.into(),
            cpu_hour_micros,
            ..Default::default()
        }),
        ..Default::default()
    }
}

pub(crate) fn create(name: &str, limit_micros: u64) -> CreateBudgetRequest {
    let budget = Budget {
        name: name.into(),
        limit_micros,
        currency: "USD".into(),
        period: BudgetPeriod::Total.into(),
        action: BudgetAction::HoldAll.into(),
        ..Default::default()
    };
    CreateBudgetRequest {
        tenant: TENANT.into(),
        request_id: new_request_id(),
        budget: Some(budget),
        comment: String::new(),
    }
}

fn get(budget_id: &str) -> GetBudgetRequest {
    GetBudgetRequest {
        tenant: TENANT.into(),
        budget_id: budget_id.into(),
    }
}

#[tokio::test]
async fn a_tenant_has_the_platforms_prices_until_it_sets_its_own() {
    let world = World::start().await;
    let mut client = world.client();
    let effective = async || {
        let request = GetPricesRequest {
            tenant: TENANT.into(),
        };
        let answer = world
            .client()
            .get_prices(by_user(request))
            .await
            .unwrap()
            .into_inner();
        let prices = answer.prices.unwrap();
        (
            prices.currency,
            prices.cpu_hour_micros,
            prices.version,
            answer.is_default,
        )
    };
    assert_eq!(effective().await, ("USD".into(), 0, 0, true));
    client
        .update_prices(by(PLATFORM, prices(PLATFORM, "EUR", 40)))
        .await
        .unwrap();
    assert_eq!(effective().await, ("EUR".into(), 40, 1, true));
    let request = prices(TENANT, "EUR", 30);
    let first = client
        .update_prices(by_user(request.clone()))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        client
            .update_prices(by_user(request))
            .await
            .unwrap()
            .into_inner(),
        first
    );
    assert_eq!(effective().await, ("EUR".into(), 30, 1, false));
    let stale = UpdatePricesRequest {
        expected_version: 2,
        ..prices(TENANT, "EUR", 20)
    };
    refused(
        client.update_prices(by_user(stale)).await,
        Reason::VersionConflict,
        "current version is 1",
    );
    let wrong = client
        .update_prices(by_user(prices(TENANT, "euro", 20)))
        .await;
    refused(wrong, Reason::InvalidField, "prices.currency");
    assert_eq!(world.events().await, 2);
}

#[tokio::test]
async fn a_budget_is_created_updated_and_deleted() {
    let world = World::start().await;
    let mut client = world.client();
    let request = create("all", 5_000_000);
    let created = client
        .create_budget(by_user(request.clone()))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        client
            .create_budget(by_user(request.clone()))
            .await
            .unwrap()
            .into_inner(),
        created
    );
    let budget = created.budget.unwrap();
    assert_eq!(
        (budget.version, budget.spent_micros, budget.period_end_time),
        (1, 0, None)
    );
    let id = budget.budget_id.clone();

    let daily = Budget {
        period: BudgetPeriod::Day.into(),
        ..request.budget.clone().unwrap()
    };
    let update = |expected_version| UpdateBudgetRequest {
        tenant: TENANT.into(),
        request_id: new_request_id(),
        budget_id: id.clone(),
        budget: Some(daily.clone()),
        expected_version,
        comment: String::new(),
    };
    refused(
        client.update_budget(by_user(update(9))).await,
        Reason::VersionConflict,
        "version is 1",
    );
    client.update_budget(by_user(update(1))).await.unwrap();
    let read = client
        .get_budget(by_user(get(&id)))
        .await
        .unwrap()
        .into_inner()
        .budget
        .unwrap();
    assert_eq!((read.version, read.period()), (2, BudgetPeriod::Day));
    assert_eq!(read.period_end_time.unwrap().seconds % 86_400, 0);

    let other_currency = client
        .update_prices(by_user(prices(TENANT, "EUR", 1)))
        .await;
    refused(
        other_currency,
        Reason::InvalidField,
        "prices.currency: is not that of the 1 budgets",
    );
    let delete = DeleteBudgetRequest {
        tenant: TENANT.into(),
        request_id: new_request_id(),
        budget_id: id.clone(),
        ..Default::default()
    };
    client.delete_budget(by_user(delete.clone())).await.unwrap();
    client.delete_budget(by_user(delete)).await.unwrap();
    refused(
        client.get_budget(by_user(get(&id))).await,
        Reason::BudgetNotFound,
        &id,
    );
    refused(
        client.get_budget(by_user(get("no id"))).await,
        Reason::BudgetNotFound,
        "`no id`",
    );
    assert_eq!(world.events().await, 3);
}

#[tokio::test]
async fn budgets_are_listed_by_name_in_pages() {
    let world = World::start().await;
    let mut client = world.client();
    for name in ["c", "a", "b", "a"] {
        client
            .create_budget(by_user(create(name, 1)))
            .await
            .unwrap();
    }
    let list = |page_token: String| {
        by_user(ListBudgetsRequest {
            tenant: TENANT.into(),
            page_size: 1,
            page_token,
            ..Default::default()
        })
    };
    let (mut names, mut token) = (Vec::new(), String::new());
    loop {
        let page = client.list_budgets(list(token)).await.unwrap().into_inner();
        names.extend(page.budgets.into_iter().map(|budget| budget.name));
        token = page.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(names, ["a", "a", "b", "c"]);
    let theirs = ListBudgetsRequest {
        tenant: "other".into(),
        ..Default::default()
    };
    assert!(
        client
            .list_budgets(by("other", theirs))
            .await
            .unwrap()
            .into_inner()
            .budgets
            .is_empty()
    );
}

#[tokio::test]
async fn budgets_are_filtered_by_name_workspace_and_action() {
    let world = World::start().await;
    let mut client = world.client();
    for (name, workspace, action) in [
        ("a", "prod", BudgetAction::Warn),
        ("a", "dev", BudgetAction::HoldAll),
        ("b", "prod", BudgetAction::HoldAll),
        ("c", "", BudgetAction::Unspecified),
    ] {
        let mut request = create(name, 1);
        let budget = request.budget.as_mut().unwrap();
        (budget.workspace, budget.action) = (workspace.into(), action.into());
        client.create_budget(by_user(request)).await.unwrap();
    }
    let list = |filter: &str, page_token: String| {
        by_user(ListBudgetsRequest {
            tenant: TENANT.into(),
            filter: filter.into(),
            page_size: 1,
            page_token,
        })
    };
    let mut check = async |filter: &str, expected: &[(&str, &str)]| {
        let (mut found, mut token) = (Vec::new(), String::new());
        loop {
            let page = client.list_budgets(list(filter, token)).await;
            let page = page.unwrap().into_inner();
            found.extend(page.budgets.into_iter().map(|it| (it.name, it.workspace)));
            token = page.next_page_token;
            if token.is_empty() {
                break;
            }
        }
        found.sort();
        let named = |(name, workspace): &(&str, &str)| (name.to_string(), workspace.to_string());
        let expected: Vec<_> = expected.iter().map(named).collect();
        assert_eq!(found, expected, "{filter}");
    };
    check("name = a", &[("a", "dev"), ("a", "prod")]).await;
    check("workspace = prod", &[("a", "prod"), ("b", "prod")]).await;
    check("workspace = \"\"", &[("c", "")]).await;
    check("action = warn", &[("a", "prod"), ("c", "")]).await;
    check("name = a AND action = HOLD_ALL", &[("a", "dev")]).await;
    check("name = d", &[]).await;
    refused(
        client
            .list_budgets(list("limit_micros = 1", String::new()))
            .await,
        Reason::InvalidFilter,
        "`limit_micros` cannot be filtered by",
    );
    let page = client.list_budgets(list("name = a", String::new())).await;
    let token = page.unwrap().into_inner().next_page_token;
    refused(
        client.list_budgets(list("name = b", token)).await,
        Reason::InvalidPageToken,
        "",
    );
}

#[tokio::test]
async fn an_invalid_budget_is_refused_and_changes_nothing() {
    let world = World::start().await;
    let mut client = world.client();
    let mut refuse = async |change: fn(&mut Budget), part: &str| {
        let mut request = create("all", 1);
        change(request.budget.as_mut().unwrap());
        refused(
            client.create_budget(by_user(request)).await,
            Reason::InvalidField,
            part,
        );
    };
    refuse(
        |budget| budget.currency = "EUR".into(),
        "budget.currency: is EUR, the price list's is USD",
    )
    .await;
    refuse(|budget| budget.period = 0, "budget.period").await;
    refuse(
        |budget| budget.selection = vec!["tag:x".into()],
        "budget.selection[0]",
    )
    .await;
    refuse(
        |budget| budget.name = "x".repeat(1 << 20),
        "budget.name: has 1048576 bytes",
    )
    .await;
    assert_eq!(world.events().await, 0);
}
