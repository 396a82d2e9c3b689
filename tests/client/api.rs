//! A stand-in for the Messages API on loopback: it records every request and answers from a script.
//!
//! The client believes the `usage` of an answer, so a script moves the context through every zone, and a `tool_use`
//! block makes it run a real tool. What is not scripted is answered with a short text; a request for a summary always
//! gets one.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

/// How long a turn takes at the least: the client writes its transcript up to a tenth of a second late, which no model
/// outruns, and hooks are to find what they would find in life.
const THINKING: Duration = Duration::from_millis(250);

/// What the stand-in writes as the summary of a compaction.
pub const SUMMARY: &str = "The stand-in's summary of the conversation.";

/// One scripted answer of the model.
#[derive(Debug, Clone)]
pub struct Turn {
    text: String,
    tools: Vec<(String, String, Value)>,
    context: u64,
}

impl Turn {
    /// An answer in words, which ends the model's turn.
    pub fn say(text: &str) -> Turn {
        Turn { text: text.into(), tools: Vec::new(), context: 20_000 }
    }

    /// An answer that calls a tool; the tool_use_id is `toolu_<id>`.
    pub fn call(id: &str, tool: &str, input: Value) -> Turn {
        Turn { text: String::new(), tools: Vec::new(), context: 20_000 }.and(id, tool, input)
    }

    /// One more call in the same answer: the client runs them at the same time.
    pub fn and(mut self, id: &str, tool: &str, input: Value) -> Turn {
        self.tools.push((format!("toolu_{id}"), tool.into(), input));
        self
    }

    /// How many tokens the request is said to have had.
    pub fn at(mut self, tokens: u64) -> Turn {
        self.context = tokens;
        self
    }
}

/// What a request was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A turn of the main conversation or of a subagent.
    Turn,
    /// The summary of a compaction.
    Summary,
    /// Something the client asks beside the conversation, without tools.
    Side,
}

/// A recorded request.
#[derive(Debug, Clone)]
pub struct Request {
    /// What it was for.
    pub purpose: Purpose,
    /// Its body.
    pub body: Value,
}

impl Request {
    fn new(body: Value) -> Request {
        let tools = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
        let last = body["messages"].as_array().into_iter().flatten().rfind(|message| message["role"] == "user");
        let last = last.map(|message| texts(&message["content"])).unwrap_or_default();
        let purpose = match (last.contains("<summary>") && last.contains("detailed summary"), tools) {
            (true, _) => Purpose::Summary,
            (false, true) => Purpose::Turn,
            (false, false) => Purpose::Side,
        };
        Request { purpose, body }
    }

    /// All texts of all messages, tool results included.
    pub fn text(&self) -> String {
        self.body["messages"].as_array().into_iter().flatten().map(|message| texts(&message["content"])).collect()
    }
}

fn texts(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone() + "\n",
        Value::Array(blocks) => blocks
            .iter()
            .map(|block| match block["type"].as_str() {
                Some("text") => texts(&block["text"]),
                Some("tool_result") => texts(&block["content"]),
                _ => String::new(),
            })
            .collect(),
        _ => String::new(),
    }
}

#[derive(Default)]
struct Script {
    turns: VecDeque<Turn>,
    requests: Vec<Request>,
    served: usize,
}

/// The running stand-in; its thread ends with the process.
pub struct Api {
    /// Where it listens.
    pub url: String,
    script: Arc<Mutex<Script>>,
}

impl Api {
    pub fn start() -> Api {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let script = Arc::new(Mutex::new(Script::default()));
        let shared = Arc::clone(&script);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let script = Arc::clone(&shared);
                // A client that hangs up in the middle is its own affair.
                std::thread::spawn(move || drop(serve(stream, &script)));
            }
        });
        Api { url, script }
    }

    /// Replaces the script.
    pub fn script(&self, turns: impl IntoIterator<Item = Turn>) {
        self.script.lock().unwrap().turns = turns.into_iter().collect();
    }

    /// How many scripted answers nobody asked for.
    pub fn left(&self) -> usize {
        self.script.lock().unwrap().turns.len()
    }

    /// Takes the requests recorded so far.
    pub fn take(&self) -> Vec<Request> {
        std::mem::take(&mut self.script.lock().unwrap().requests)
    }
}

fn serve(stream: TcpStream, script: &Mutex<Script>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let wanted = line.starts_with("POST /v1/messages") && !line.contains("count_tokens");
        let mut length = 0;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            if header.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = header.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let answer = serde_json::from_slice(&body).ok().filter(|_| wanted).map(|body| answer(body, script));
        let (status, (kind, bytes)) =
            answer.map_or(("404 Not Found", ("application/json", "{}".into())), |answer| ("200 OK", answer));
        let head = format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n", bytes.len());
        (&stream).write_all((head + &bytes).as_bytes())?;
    }
}

fn answer(body: Value, script: &Mutex<Script>) -> (&'static str, String) {
    let request = Request::new(body);
    let mut script = script.lock().unwrap();
    script.served += 1;
    let id = format!("msg_{}", script.served);
    let turn = match request.purpose {
        Purpose::Turn => script.turns.pop_front().unwrap_or_else(|| Turn::say("Done.")),
        Purpose::Summary => Turn::say(&format!("<analysis>\nRead.\n</analysis>\n<summary>\n{SUMMARY}\n</summary>")),
        Purpose::Side => Turn::say("{}"),
    };
    let model = request.body["model"].clone();
    let stream = request.body["stream"] == true;
    let thinking = if request.purpose == Purpose::Turn { THINKING } else { Duration::ZERO };
    script.requests.push(request);
    drop(script);
    std::thread::sleep(thinking);
    let mut blocks: Vec<Value> = turn
        .tools
        .iter()
        .map(|(id, name, input)| json!({"type": "tool_use", "id": id, "name": name, "input": input}))
        .collect();
    if !turn.text.is_empty() {
        blocks.insert(0, json!({"type": "text", "text": turn.text}));
    }
    let reason = if turn.tools.is_empty() { "end_turn" } else { "tool_use" };
    let usage = json!({
        "input_tokens": 10,
        "output_tokens": 40,
        "cache_creation_input_tokens": 1000,
        "cache_read_input_tokens": turn.context - 1010,
        "cache_creation": {"ephemeral_5m_input_tokens": 1000, "ephemeral_1h_input_tokens": 0},
    });
    let message = json!({
        "id": id, "type": "message", "role": "assistant", "model": model, "content": blocks,
        "stop_reason": reason, "stop_sequence": null, "usage": usage,
    });
    if stream { ("text/event-stream", events(&message)) } else { ("application/json", message.to_string()) }
}

/// A message as server-sent events.
fn events(message: &Value) -> String {
    let mut start = message.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    let mut events = vec![json!({"type": "message_start", "message": start})];
    for (index, block) in message["content"].as_array().into_iter().flatten().enumerate() {
        let mut empty = block.clone();
        let delta = if block["type"] == "text" {
            empty["text"] = json!("");
            json!({"type": "text_delta", "text": block["text"]})
        } else {
            empty["input"] = json!({});
            json!({"type": "input_json_delta", "partial_json": block["input"].to_string()})
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": empty}));
        events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let delta = json!({"stop_reason": message["stop_reason"], "stop_sequence": null});
    events.push(json!({"type": "message_delta", "delta": delta, "usage": message["usage"]}));
    events.push(json!({"type": "message_stop"}));
    let line = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default());
    events.iter().map(line).collect()
}
