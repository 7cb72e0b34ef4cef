//! Child processes that never outlive this process: each in its own process group, stopped on drop,
//! and killed by the kernel if this process is killed.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

/// The poll interval of a wait, because waiting with a timeout would need unsafe code.
const WAIT_STEP: Duration = Duration::from_millis(5);

/// A running child and everything it starts. Dropping it kills the whole group.
#[derive(Debug)]
pub struct Child {
    name: String,
    inner: std::process::Child,
}

impl Child {
    /// A command whose process dies with this one; add arguments, environment and files, then
    /// [`Child::spawn`] it.
    pub fn command(program: &Path) -> Command {
        command(program, None)
    }

    /// Starts `command` in its own process group.
    pub fn spawn(name: &str, mut command: Command) -> io::Result<Child> {
        command.process_group(0);
        let inner = spawn_on_permanent_thread(command)?;
        Ok(Child {
            name: name.to_owned(),
            inner,
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn id(&self) -> u32 {
        self.inner.id()
    }

    /// The exit status, if it has ended.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.inner.try_wait()
    }

    /// Sends a signal to the process itself, not to its group.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        kill(self.pid(), signal).map_err(io::Error::from)
    }

    /// Waits at most `limit` for the end.
    pub fn wait_for(&mut self, limit: Duration) -> io::Result<Option<ExitStatus>> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.inner.try_wait()? {
                return Ok(Some(status));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            std::thread::sleep(WAIT_STEP);
        }
    }

    /// Sends `signal`, waits `grace`, then kills the group.
    pub fn stop(&mut self, signal: Signal, grace: Duration) -> io::Result<ExitStatus> {
        if self.inner.try_wait()?.is_none() {
            self.signal(signal)?;
        }
        self.wait_or_kill(grace)
    }

    /// Waits `grace` for the end, then kills the group.
    pub fn wait_or_kill(&mut self, grace: Duration) -> io::Result<ExitStatus> {
        match self.wait_for(grace)? {
            Some(status) => Ok(status),
            None => self.kill_group(),
        }
    }

    /// `kill -9` of the whole group.
    pub fn kill_group(&mut self) -> io::Result<ExitStatus> {
        // ESRCH only means that the group is gone already.
        let _ = killpg(self.pid(), Signal::SIGKILL);
        self.inner.wait()
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.inner.id().cast_signed())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if matches!(self.inner.try_wait(), Ok(None)) {
            let _ = self.kill_group();
        }
    }
}

/// The user that a child runs as.
#[derive(Debug, Clone, Copy)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// A command for `program` that the kernel kills when this process dies, run as `user` if given.
///
/// util-linux's `setpriv` sets both between fork and exec, which is not possible here without
/// unsafe code; on a system without it the child still runs and is still stopped on drop.
pub(crate) fn command(program: &Path, user: Option<User>) -> Command {
    let Some(setpriv) = find_in_path("setpriv") else {
        return plain_command(program, user);
    };
    let mut command = Command::new(setpriv);
    command.args(["--pdeathsig", "KILL"]);
    if let Some(User { uid, gid }) = user {
        command
            .arg(format!("--reuid={uid}"))
            .arg(format!("--regid={gid}"))
            .arg("--clear-groups");
    }
    command.arg("--").arg(program);
    command
}

fn plain_command(program: &Path, user: Option<User>) -> Command {
    let mut command = Command::new(program);
    if let Some(User { uid, gid }) = user {
        command.uid(uid).gid(gid);
    }
    command
}

pub(crate) fn find_in_path(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|dir| dir.join(program))
        .find(|path| path.is_file())
}

/// Spawns on a thread that lives as long as the process, because the kernel sends the death signal
/// when the *thread* that forked ends.
fn spawn_on_permanent_thread(command: Command) -> io::Result<std::process::Child> {
    type Job = (Command, Sender<io::Result<std::process::Child>>);
    static SPAWNER: OnceLock<Sender<Job>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (jobs, inbox) = channel::<Job>();
        std::thread::spawn(move || {
            for (mut command, reply) in inbox {
                // If the caller is gone, the child is dropped here and ends with the death signal.
                let _ = reply.send(command.spawn());
            }
        });
        jobs
    });
    let (reply, answer) = channel();
    spawner.send((command, reply)).map_err(io::Error::other)?;
    answer.recv().map_err(io::Error::other)?
}
