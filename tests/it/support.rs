//! A scratch home for one test: hermetic, parallel, gone afterwards.

#![allow(dead_code, reason = "each module of tests uses what it needs")]
#![allow(clippy::disallowed_methods, reason = "tests make files and start programs")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;

/// A root folder with `home/.claude`, `tmp` and `work/proj` in it.
pub struct Sandbox {
    root: tempfile::TempDir,
    pub home: PathBuf,
    pub tmp: PathBuf,
    pub cwd: PathBuf,
    /// The moment that `{{ms:0}}` stands for.
    pub now_ms: i64,
}

/// What a run of the binary left.
pub struct Output {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    pub elapsed: Duration,
}

impl std::fmt::Display for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}\n--- stderr\n{}\n[exit status: {}]", self.stdout, self.stderr, self.code)
    }
}

/// A run that is being described; ends in [`Run::run`].
#[must_use]
pub struct Run<'a> {
    sandbox: &'a Sandbox,
    program: String,
    args: Vec<String>,
    stdin: Vec<u8>,
    vars: Vec<(String, String)>,
    cwd: PathBuf,
    limit: Duration,
}

impl Sandbox {
    pub fn new() -> Sandbox {
        let root = tempfile::Builder::new().prefix("si-").tempdir().unwrap();
        // The kernel's name for it, since a temp folder may itself be a link.
        let base = root.path().canonicalize().unwrap();
        let [home, tmp, cwd] = ["home", "tmp", "work/proj"].map(|name| base.join(name));
        for folder in [home.join(".claude"), tmp.clone(), cwd.clone()] {
            std::fs::create_dir_all(folder).unwrap();
        }
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
        Sandbox { root, home, tmp, cwd, now_ms }
    }

    pub fn root(&self) -> &Path {
        self.home.parent().unwrap()
    }

    /// The same folders as a value for calling the library in process, with the real clock, in UTC.
    pub fn env(&self) -> si::Env {
        let mut env = si::Env::for_tests(self.root());
        env.home = Some(self.home.clone());
        env.claude_dir = Some(self.home.join(".claude"));
        env.tmp = self.tmp.clone();
        env.cwd = self.cwd.clone();
        env.now_ms = self.now_ms;
        for (key, value) in self.base_vars() {
            env = env.with_var(&key, &value);
        }
        env
    }

    /// The variables of every run.
    pub fn base_vars(&self) -> Vec<(String, String)> {
        let path = std::env::var("PATH").unwrap_or_default();
        let text = |path: &Path| path.to_str().unwrap().to_string();
        [
            ("PATH", path),
            ("HOME", text(&self.home)),
            ("TMPDIR", text(&self.tmp)),
            ("TZ", "UTC".into()),
            ("LANG", "C.UTF-8".into()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("GIT_CONFIG_GLOBAL", "/dev/null".into()),
            ("GIT_CEILING_DIRECTORIES", text(self.root())),
        ]
        .map(|(key, value)| (key.to_string(), value))
        .into()
    }

    /// Describes a run of the binary.
    pub fn si<S: Into<String>>(&self, args: impl IntoIterator<Item = S>) -> Run<'_> {
        self.program(env!("CARGO_BIN_EXE_si"), args)
    }

    /// Describes a run of another program, which is to start the binary.
    pub fn program<S: Into<String>>(&self, program: &str, args: impl IntoIterator<Item = S>) -> Run<'_> {
        Run {
            sandbox: self,
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            stdin: Vec::new(),
            vars: Vec::new(),
            cwd: self.cwd.clone(),
            limit: Duration::from_secs(20),
        }
    }

    /// Describes a hook call with a JSON payload.
    pub fn hook(&self, name: &str, payload: &Value) -> Run<'_> {
        self.si(["hook", name]).stdin(payload.to_string())
    }

    /// The file at `base:path`, as the tables write places (`home:`, `tmp:`, `cwd:`).
    pub fn place(&self, base: &str, path: &str) -> PathBuf {
        let base = match base {
            "home" => &self.home,
            "tmp" => &self.tmp,
            "cwd" => &self.cwd,
            other => panic!("unknown base {other}"),
        };
        if path == "." || path.is_empty() { base.clone() } else { base.join(path) }
    }

    pub fn write(&self, path: &Path, bytes: impl AsRef<[u8]>) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    /// Writes a program. By another process: while this one has a file open for writing, whatever a test beside starts at
    /// that moment inherits it, and the kernel runs no program that anybody may still write to.
    pub fn write_program(&self, path: &Path, bytes: impl AsRef<[u8]>) {
        use std::io::Write;
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "cat > \"$0\" && chmod 755 \"$0\""]).arg(path).stdin(std::process::Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        shell.stdin.take().unwrap().write_all(bytes.as_ref()).unwrap();
        assert!(shell.wait().unwrap().success(), "{}", path.display());
    }

    pub fn read(&self, path: impl AsRef<Path>) -> String {
        std::fs::read_to_string(path.as_ref()).unwrap_or_else(|e| panic!("{}: {e}", path.as_ref().display()))
    }

    /// Runs git in `dir` and fails the test when it fails.
    pub fn git(&self, dir: &Path, args: &[&str], extra: &[(&str, &str)]) -> String {
        let mut command = Command::new("git");
        command.args(args).current_dir(dir).env_clear().envs(self.base_vars());
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "Ada Test").env(format!("GIT_{who}_EMAIL"), "ada@example.test");
        }
        command.envs(extra.iter().copied());
        let output = command.output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_string()
    }

    /// Fills the placeholders of the tables into every string of `value`.
    pub fn expand(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.expand_whole(text),
            Value::Array(items) => items.iter().map(|item| self.expand(item)).collect(),
            Value::Object(map) => map
                .iter()
                .map(|(key, value)| (self.expand_text(key), self.expand(value)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
            other => other.clone(),
        }
    }

    fn expand_whole(&self, text: &str) -> Value {
        if let Some(offset) = text.strip_prefix("{{ms:").and_then(|rest| rest.strip_suffix("}}"))
            && let Ok(seconds) = offset.parse::<f64>()
        {
            return (self.now_ms + (seconds * 1000.0) as i64).into();
        }
        self.expand_text(text).into()
    }

    /// Fills the placeholders of the tables into a text.
    pub fn expand_text(&self, text: &str) -> String {
        let dashed = |path: &Path| path.to_str().unwrap().replace('/', "-");
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("{{") {
            out.push_str(&rest[..at]);
            let Some(end) = rest[at..].find("}}") else { break };
            let inner = &rest[at + 2..at + end];
            let moment = |offset: &str| self.now_ms + (offset.parse::<f64>().unwrap_or(0.0) * 1000.0) as i64;
            if let Some(offset) = inner.strip_prefix("ms:") {
                out.push_str(&moment(offset).to_string());
            } else if let Some(offset) = inner.strip_prefix("iso:") {
                out.push_str(&self.env().iso(moment(offset)));
            } else if let Some((count, what)) = inner.strip_prefix("repeat:").and_then(|r| r.split_once(':')) {
                out.push_str(&what.repeat(count.parse().unwrap()));
            } else {
                out.push_str(&rest[at..at + end + 2]);
            }
            rest = &rest[at + end + 2..];
        }
        out.push_str(rest);
        out.replace("{CWD_ENC}", &dashed(&self.cwd))
            .replace("{HOME_ENC}", &dashed(&self.home))
            .replace("{HOME}", self.home.to_str().unwrap())
            .replace("{TMP}", self.tmp.to_str().unwrap())
            .replace("{CWD}", self.cwd.to_str().unwrap())
            .replace("{UID}", &self.env().uid.to_string())
    }

    /// Puts the placeholders for this sandbox's folders back into a text.
    pub fn collapse(&self, text: &str) -> String {
        let dashed = |path: &Path| path.to_str().unwrap().replace('/', "-");
        text.replace(self.cwd.to_str().unwrap(), "{CWD}")
            .replace(self.tmp.to_str().unwrap(), "{TMP}")
            .replace(self.home.to_str().unwrap(), "{HOME}")
            .replace(&dashed(&self.cwd), "{CWD_ENC}")
            .replace(&dashed(&self.home), "{HOME_ENC}")
    }

    /// Carries out the setup operations of the tables; `ops` is already expanded.
    pub fn setup(&self, ops: &[Value]) {
        for op in ops {
            let text = |key: &str| op[key].as_str();
            let place = || self.place(text("base").unwrap_or("cwd"), text("path").unwrap_or("."));
            match text("op").unwrap() {
                "mkdir" => std::fs::create_dir_all(place()).unwrap(),
                "rm" => {
                    let path = place();
                    let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
                }
                "touch" => self.write(&place(), ""),
                "write" => self.write_op(op, &place()),
                "repo" => drop(self.repo(&place(), op)),
                "git" => {
                    let args: Vec<&str> = op["args"].as_array().unwrap().iter().map(|a| a.as_str().unwrap()).collect();
                    let extra: Vec<(&str, &str)> = op["env"]
                        .as_object()
                        .into_iter()
                        .flatten()
                        .map(|(k, v)| (k.as_str(), v.as_str().unwrap()))
                        .collect();
                    self.git(&place(), &args, &extra);
                }
                other => panic!("unknown setup op {other}"),
            }
        }
    }

    fn write_op(&self, op: &Value, path: &Path) {
        let content = if let Some(text) = op["text"].as_str() {
            text.to_string()
        } else if let Some(rows) = op["jsonl"].as_array() {
            rows.iter()
                .map(|row| if let Some(raw) = row.as_str() { format!("{raw}\n") } else { format!("{row}\n") })
                .collect()
        } else {
            op["json"].to_string()
        };
        self.write(path, content);
        if let Some(mode) = op["mode"].as_u64().or_else(|| u64::from_str_radix(op["mode"].as_str()?, 8).ok()) {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode as u32)).unwrap();
        }
        if let Some(ago) = op["mtime_ago_s"].as_f64() {
            let when = UNIX_EPOCH + Duration::from_millis((self.now_ms - (ago * 1000.0) as i64) as u64);
            std::fs::File::options().append(true).open(path).unwrap().set_modified(when).unwrap();
        }
    }

    /// Has the state of the work tree at `dir` stored, so that a busy machine does not show a redraw without it.
    pub fn settle_git(&self, dir: &Path) {
        let output = self.si(["refresh", "git", dir.to_str().unwrap()]).run();
        assert_eq!(output.code, 0, "{output}");
    }

    /// Makes a repository as the tables describe it and returns the commits' ids, oldest first.
    pub fn repo(&self, dir: &Path, spec: &Value) -> Vec<String> {
        std::fs::create_dir_all(dir).unwrap();
        self.git(dir, &["init", "-q", "-b", spec["branch"].as_str().unwrap_or("main")], &[]);
        let mut ids = Vec::new();
        for commit in spec["commits"].as_array().into_iter().flatten() {
            for (name, content) in commit["files"].as_object().into_iter().flatten() {
                match content.as_str() {
                    Some(content) => self.write(&dir.join(name), content),
                    None => std::fs::remove_file(dir.join(name)).unwrap(),
                }
            }
            self.git(dir, &["add", "-A"], &[]);
            let date = match (commit["age_s"].as_f64(), commit["date"].as_str()) {
                (Some(age), _) => format!("@{} +0000", self.now_ms / 1000 - age as i64),
                (None, Some(date)) => date.to_string(),
                (None, None) => format!("@{} +0000", self.now_ms / 1000),
            };
            let message = commit["message"].as_str().unwrap_or("x");
            let dates = [("GIT_AUTHOR_DATE", date.as_str()), ("GIT_COMMITTER_DATE", date.as_str())];
            self.git(
                dir,
                &["commit", "-q", "--allow-empty", "--allow-empty-message", "--cleanup=verbatim", "-m", message],
                &dates,
            );
            ids.push(self.git(dir, &["rev-parse", "HEAD"], &[]));
        }
        for command in spec["then"].as_array().into_iter().flatten() {
            let words: Vec<&str> = match command {
                Value::String(line) => line.split_whitespace().collect(),
                other => other.as_array().unwrap().iter().map(|w| w.as_str().unwrap()).collect(),
            };
            self.git(dir, &words, &[]);
        }
        for (name, content) in spec["dirty"].as_object().into_iter().flatten() {
            match content.as_str() {
                Some(content) => self.write(&dir.join(name), content),
                None => std::fs::remove_file(dir.join(name)).unwrap(),
            }
        }
        ids
    }
}

impl Run<'_> {
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    pub fn var(mut self, key: &str, value: &str) -> Self {
        self.vars.push((key.into(), value.into()));
        self
    }

    pub fn cwd(mut self, dir: &Path) -> Self {
        self.cwd = dir.into();
        self
    }

    /// How long the run may take.
    pub fn within(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs the binary with nothing but the sandbox around it; over the limit (20 seconds) it is killed and the test fails.
    pub fn run(self) -> Output {
        let begun = Instant::now();
        let mut child = Command::new(&self.program)
            .args(&self.args)
            .env_clear()
            .envs(self.sandbox.base_vars())
            .envs(self.vars)
            .current_dir(&self.cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let bytes = self.stdin;
        let feeder = std::thread::spawn(move || drop(stdin.write_all(&bytes)));
        let (sender, receiver) = std::sync::mpsc::channel();
        let id = child.id();
        std::thread::spawn(move || sender.send(child.wait_with_output()));
        let output = receiver.recv_timeout(self.limit).unwrap_or_else(|_| {
            let _ = Command::new("kill").args(["-9", &id.to_string()]).status();
            panic!("si {:?} hung", self.args)
        });
        let output = output.unwrap();
        let _ = feeder.join();
        Output {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            elapsed: begun.elapsed(),
        }
    }
}
