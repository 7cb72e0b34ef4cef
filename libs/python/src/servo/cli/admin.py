"""``servo admin``"""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import click

from . import show
from .commands import Argument, Group, Option
from .run import Comment
from .runs import Limit
from .server import Server, with_server
from .show import AsJson

WorkerId = Annotated[str, Argument(help="The worker's id, as `servo admin workers` shows it.")]
PauseId = Annotated[str, Argument(help="The pause's id, as `servo admin pauses` shows it.")]
OnlyPool = Annotated[str, Option("--pool", help="Only tasks that use this pool.")]
WholeTenant = Annotated[bool, Option("--all-workspaces", help="The whole tenant, not only the workspace.")]

admin_app = Group()


@admin_app.add("workers")
@with_server
def workers_command(server: Server, as_json: AsJson = False) -> None:
    """List the tenant's workers and their load."""
    from servo.v1 import worker_pb2

    with server.client() as client:
        workers = list(client.workers())
    if as_json:
        return show.print_list(workers)
    rows = [
        [
            each.worker_id,
            each.info.name,
            worker_pb2.WorkerState.Name(each.state).removeprefix("WORKER_STATE_"),
            f"{each.active_attempts}/{each.info.slots}",
            " ".join(each.info.workspaces) or "all",
            show.when(each.seen_time),
        ]
        for each in workers
    ]
    return show.print_table(["WORKER", "NAME", "STATE", "BUSY", "WORKSPACES", "SEEN"], rows)


@admin_app.add("drain")
@with_server
def drain_command(server: Server, worker: WorkerId, comment: Comment = "", as_json: AsJson = False) -> None:
    """Let a worker finish its attempts and give it nothing new."""
    from servo.v1 import dispatcher_pb2

    request = dispatcher_pb2.DrainWorkerRequest(tenant=server.tenant, worker_id=worker, comment=comment)
    with server.client() as client:
        answer = client.dispatcher.DrainWorker(request)
    return show.print_message(answer) if as_json else click.echo(f"{worker} gets no new tasks")


@admin_app.add("kill")
@with_server
def kill_command(server: Server, worker: WorkerId, comment: Comment = "", as_json: AsJson = False) -> None:
    """Disconnect a worker; its tasks are given to other workers."""
    from servo.v1 import dispatcher_pb2

    request = dispatcher_pb2.KillWorkerRequest(tenant=server.tenant, worker_id=worker, comment=comment)
    with server.client() as client:
        answer = client.dispatcher.KillWorker(request)
    return show.print_message(answer) if as_json else click.echo(f"{worker} is disconnected")


@admin_app.add("pause")
@with_server
def pause_command(
    server: Server,
    pool: OnlyPool = "",
    all_workspaces: WholeTenant = False,
    comment: Comment = "",
    as_json: AsJson = False,
) -> None:
    """Stop giving tasks to workers; running attempts continue."""
    from servo.v1 import dispatcher_pb2

    request = dispatcher_pb2.PauseDispatchRequest(
        tenant=server.tenant, workspace="" if all_workspaces else server.workspace, pool=pool, comment=comment
    )
    with server.client() as client:
        answer = client.dispatcher.PauseDispatch(request)
    if as_json:
        return show.print_message(answer)
    return click.echo(f"paused; `servo admin resume {answer.pause.pause_id}` continues")


@admin_app.add("pauses")
@with_server
def pauses_command(server: Server, as_json: AsJson = False) -> None:
    """List pauses, with author and reason."""
    from servo.client.pages import pages
    from servo.v1 import dispatcher_pb2

    with server.client() as client:
        request = dispatcher_pb2.ListDispatchPausesRequest(tenant=server.tenant)
        pauses = list(pages(client.dispatcher.ListDispatchPauses, request))
    if as_json:
        return show.print_list(pauses)
    rows = [
        [
            each.pause_id,
            each.workspace or "all",
            each.pool or "all",
            show.when(each.start_time),
            f"{each.requested_by.principal} {each.requested_by.comment}".strip(),
        ]
        for each in pauses
    ]
    return show.print_table(["PAUSE", "WORKSPACE", "POOL", "SINCE", "BY"], rows)


@admin_app.add("resume")
@with_server
def resume_command(server: Server, pause: PauseId, comment: Comment = "", as_json: AsJson = False) -> None:
    """End a pause."""
    from servo.v1 import dispatcher_pb2

    request = dispatcher_pb2.ResumeDispatchRequest(tenant=server.tenant, pause_id=pause, comment=comment)
    with server.client() as client:
        answer = client.dispatcher.ResumeDispatch(request)
    return show.print_message(answer) if as_json else click.echo("resumed")


@admin_app.add("deployments")
@with_server
def deployments_command(server: Server, limit: Limit = 20, as_json: AsJson = False) -> None:
    """List the deployments of the workspace, newest first."""
    from servo.client.pages import pages
    from servo.v1 import planner_pb2

    request = planner_pb2.ListDeploymentsRequest(tenant=server.tenant, workspace=server.workspace)
    with server.client() as client:
        deployments = list(islice(pages(client.planner.ListDeployments, request), limit))
    if as_json:
        return show.print_list(deployments)
    rows = [
        [
            str(each.version),
            each.deployment_id,
            show.when(each.deploy_time),
            str(each.asset_count),
            each.code_version or "-",
            f"{each.deployed_by.principal} {each.deployed_by.comment}".strip(),
        ]
        for each in deployments
    ]
    return show.print_table(["VERSION", "DEPLOYMENT", "WHEN", "ASSETS", "CODE", "BY"], rows)
