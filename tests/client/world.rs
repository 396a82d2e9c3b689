//! A scratch home with the real client in it.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::api::{Api, Purpose, Request, Turn};

/// One start of the client takes a second or two; a hang must end all the same.
const PATIENCE: Duration = Duration::from_secs(120);

/// The repository that is being tested.
pub const REPOSITORY: &str = env!("CARGO_MANIFEST_DIR");

/// The key that the client is given; the stand-in takes any.
pub const API_KEY: &str = "sk-stand-in-0123456789abcdefghij";

/// A client, and the version it says it has.
#[derive(Debug, Clone)]
pub struct Client {
    pub program: PathBuf,
    pub version: String,
}

impl Client {
    /// The clients to run: `SI_CLIENT` alone where it is set, else all of `tests/client/node_modules`.
    pub fn find() -> Vec<Client> {
        let programs = match std::env::var_os("SI_CLIENT").filter(|path| !path.is_empty()) {
            Some(path) => vec![PathBuf::from(path)],
            None => {
                let modules = Path::new(REPOSITORY).join("tests/client/node_modules");
                let below = |folder: &Path| -> Vec<PathBuf> {
                    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
                };
                let mut packages = below(&modules);
                packages.extend(below(&modules.join("@anthropic-ai")));
                packages.sort();
                packages.into_iter().map(|package| package.join("claude")).filter(|path| path.is_file()).collect()
            }
        };
        let version = |program: &Path| {
            let home = tempfile::tempdir().unwrap();
            let output = Command::new(program).arg("--version").env("HOME", home.path()).output();
            let output = output.unwrap_or_else(|error| panic!("{}: {error}", program.display()));
            String::from_utf8_lossy(&output.stdout).split_whitespace().next().unwrap_or("unknown").to_owned()
        };
        programs.into_iter().map(|program| Client { version: version(&program), program }).collect()
    }
}

/// Home, temp folder, project and API of one scenario.
pub struct World {
    root: tempfile::TempDir,
    pub home: PathBuf,
    pub tmp: PathBuf,
    pub cwd: PathBuf,
    pub api: Api,
    pub client: Client,
    /// `PATH` of the client and of everything it starts.
    pub path: String,
}

/// What a run of the client left.
#[derive(Debug)]
pub struct Run {
    /// The session's id.
    pub session: String,
    /// What the client asked the API.
    pub requests: Vec<Request>,
}

impl Run {
    /// The requests of the conversation itself.
    pub fn turns(&self) -> Vec<&Request> {
        self.requests.iter().filter(|request| request.purpose == Purpose::Turn).collect()
    }

    /// The text of the last request of the conversation.
    pub fn last(&self) -> String {
        self.turns().last().map(|request| request.text()).unwrap_or_default()
    }

    /// The text of the first request for a summary.
    pub fn summary(&self) -> String {
        let summary = self.requests.iter().find(|request| request.purpose == Purpose::Summary);
        summary.map(Request::text).unwrap_or_default()
    }
}

impl World {
    pub fn new(client: &Client) -> World {
        let root = tempfile::Builder::new().prefix("si-client-").tempdir().unwrap();
        let base = root.path().canonicalize().unwrap();
        let [home, tmp, cwd] = ["home", "tmp", "w/proj"].map(|name| base.join(name));
        for folder in [home.join(".claude"), tmp.clone(), cwd.clone()] {
            std::fs::create_dir_all(folder).unwrap();
        }
        let path = std::env::var("PATH").unwrap_or_default();
        World { root, home, tmp, cwd, api: Api::start(), client: client.clone(), path }
    }

    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// A file of the client's configuration folder.
    pub fn claude(&self, name: &str) -> PathBuf {
        self.home.join(".claude").join(name)
    }

    pub fn write(&self, path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn read(&self, path: &Path) -> String {
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// A state file of the temp folder, as text; empty when it is not there.
    pub fn state(&self, name: &str) -> String {
        std::fs::read_to_string(self.tmp.join(name)).unwrap_or_default()
    }

    /// The project's folder in the client's configuration folder.
    pub fn project(&self) -> PathBuf {
        let name = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let enc: String = self.cwd.to_str().unwrap().chars().map(name).collect();
        self.claude("projects").join(enc)
    }

    /// A program with nothing but this world around it.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(&self.cwd).stdin(Stdio::null());
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        for (name, value) in [
            ("HOME", text(&self.home)),
            ("TMPDIR", text(&self.tmp)),
            ("PATH", self.path.clone()),
            ("LANG", "C.UTF-8".into()),
            ("TERM", "xterm-256color".into()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("ANTHROPIC_BASE_URL", self.api.url.clone()),
            ("ANTHROPIC_API_KEY", API_KEY.into()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".into()),
            ("DISABLE_TELEMETRY", "1".into()),
            ("DISABLE_AUTOUPDATER", "1".into()),
            // Without it the client refuses to skip permissions as root.
            ("IS_SANDBOX", "1".into()),
        ] {
            command.env(name, value);
        }
        command
    }

    /// Runs our binary and fails the scenario when it fails.
    pub fn si(&self, args: &[&str]) -> String {
        let output = self.command(Path::new(env!("CARGO_BIN_EXE_si"))).args(args).output().unwrap();
        assert!(output.status.success(), "si {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn git(&self, args: &[&str]) {
        self.git_at("", args);
    }

    /// Runs git at another time; empty is now.
    pub fn git_at(&self, date: &str, args: &[&str]) {
        let who = ["-c", "user.name=Ada Test", "-c", "user.email=ada@example.test", "-c", "init.defaultBranch=main"];
        let mut command = self.command(Path::new("git"));
        command.args(who).args(args).env("GIT_AUTHOR_DATE", date).env("GIT_COMMITTER_DATE", date);
        let output = command.output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Runs the client with any arguments.
    pub fn run(&self, args: &[&str]) -> Output {
        let mut command = self.command(&self.client.program);
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{}: {error}", self.client.program.display()));
        let (mut stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let pid = child.id();
        let (sender, receiver) = std::sync::mpsc::channel();
        let errors = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stderr.read_to_end(&mut bytes);
            bytes
        });
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stdout.read_to_end(&mut bytes);
            let _ = sender.send(child.wait().map(|status| (status, bytes)));
        });
        let Ok(ended) = receiver.recv_timeout(PATIENCE) else {
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
            panic!("the client hung: {args:?}")
        };
        let (status, stdout) = ended.unwrap();
        Output { status, stdout, stderr: errors.join().unwrap() }
    }

    fn prompt(&self, options: &[&str], turns: Vec<Turn>, prompt: &str) -> Run {
        self.api.script(turns);
        self.api.take();
        let fixed = ["-p", "--dangerously-skip-permissions", "--output-format", "json"];
        let output = self.run(&[&fixed, options, &[prompt]].concat());
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{prompt:?} failed: {stdout}{stderr}");
        assert_eq!(self.api.left(), 0, "{prompt:?} ended before its script did: {stdout}");
        let result: Value = stdout.lines().rev().find_map(|line| serde_json::from_str(line).ok()).unwrap_or_default();
        let session = result["session_id"].as_str().unwrap_or_default().to_owned();
        Run { session, requests: self.api.take() }
    }

    /// Starts a new session with a prompt, answered by `turns`.
    pub fn start(&self, turns: Vec<Turn>, prompt: &str) -> Run {
        self.prompt(&[], turns, prompt)
    }

    /// Goes on with the newest session: a prompt, `/compact …` or another slash command.
    pub fn go_on(&self, turns: Vec<Turn>, prompt: &str) -> Run {
        self.prompt(&["--continue"], turns, prompt)
    }
}
