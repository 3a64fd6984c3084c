//! What goes to each provider and what is read from it, byte for byte.

use caretaker::agent::model::{
    Answer, AnswerError, Conversation, Finish, Limits, ModelTurn, Protocol, ToolCall,
    ToolDescription, ToolResult, Turn, Usage,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const PROTOCOLS: [Protocol; 4] = [
    Protocol::Anthropic,
    Protocol::Openai,
    Protocol::Gemini,
    Protocol::Ollama,
];

fn call(id: &str, name: &str, arguments: Value) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments,
    }
}

fn result(call: &ToolCall, text: &str, failed: bool) -> ToolResult {
    ToolResult {
        call: call.id.clone(),
        tool: call.name.clone(),
        text: text.to_owned(),
        failed,
    }
}

/// Two calls at once, one of them misspelt; then words; then nothing.
fn conversation() -> Conversation {
    let read = call("c1", "read_file", json!({"path": "a"}));
    let odd = call("c2", "a tool!", json!("{\"path\": "));
    Conversation {
        system: "Mend it.".to_owned(),
        tools: vec![ToolDescription {
            name: "read_file",
            description: "Reads.",
            schema: json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}),
        }],
        turns: vec![
            Turn::Ours("the task".to_owned()),
            Turn::Results(vec![]),
            Turn::Model(ModelTurn {
                text: " \n".to_owned(),
                calls: vec![read.clone(), odd.clone()],
                native: None,
            }),
            Turn::Results(vec![
                result(&read, "content", false),
                result(&odd, "Not done: there is no such tool", true),
            ]),
            Turn::Model(ModelTurn {
                text: "Hm.".to_owned(),
                ..ModelTurn::default()
            }),
            Turn::Ours("Go on.".to_owned()),
        ],
    }
}

#[test]
fn requests_are_as_the_providers_want_them() {
    for protocol in PROTOCOLS {
        let request = protocol.request("m-1", &conversation(), Limits::default());
        let shown = serde_json::to_string_pretty(&request).unwrap();
        insta::assert_snapshot!(format!("model_request_{}", protocol.name()), shown);
    }
}

fn read(protocol: Protocol, body: &Value) -> Answer {
    protocol.answer(body.to_string().as_bytes()).unwrap()
}

fn usage(input: u64, output: u64) -> Option<Usage> {
    Some(Usage { input, output })
}

#[test]
fn several_calls_at_once_are_read_with_words_and_usage() {
    let bodies = [
        json!({"type": "message", "role": "assistant", "stop_reason": "tool_use", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "Look."},
            {"type": "tool_use", "id": "t1", "name": "read_file", "input": {"path": "a"}},
            {"type": "tool_use", "id": "t2", "name": "list_files", "input": {}}],
            "usage": {"input_tokens": 1, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 300, "output_tokens": 7, "service_tier": "standard"}}),
        json!({"object": "chat.completion", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": "Look.", "tool_calls": [
            {"id": "t1", "type": "function", "function": {"name": "read_file", "arguments": "{\"path\": \"a\"}"}},
            {"id": "t2", "type": "function", "function": {"name": "list_files", "arguments": ""}}]}}],
            "usage": {"prompt_tokens": 321, "completion_tokens": 7, "total_tokens": 328, "prompt_tokens_details": {"cached_tokens": 300}}}),
        json!({"candidates": [{"finishReason": "STOP", "content": {"role": "model", "parts": [
            {"text": "hm", "thought": true}, {"text": "Look."},
            {"functionCall": {"id": "t1", "name": "read_file", "args": {"path": "a"}}, "thoughtSignature": "c2ln"},
            {"functionCall": {"id": "t2", "name": "list_files"}}]}}],
            "usageMetadata": {"promptTokenCount": 321, "cachedContentTokenCount": 300, "candidatesTokenCount": 4, "thoughtsTokenCount": 3}}),
        json!({"model": "m", "done": true, "done_reason": "stop", "prompt_eval_count": 321, "eval_count": 7, "message": {"role": "assistant", "content": "Look.", "thinking": "hm", "tool_calls": [
            {"function": {"name": "read_file", "arguments": {"path": "a"}}},
            {"function": {"name": "list_files", "arguments": {}}}]}}),
    ];
    for (protocol, body) in PROTOCOLS.into_iter().zip(bodies) {
        let answer = read(protocol, &body);
        assert_eq!(answer.usage, usage(321, 7), "{protocol:?}");
        assert_eq!(answer.finish, Finish::Complete, "{protocol:?}");
        assert_eq!(answer.turn.text, "Look.", "{protocol:?}");
        let ids = if protocol == Protocol::Ollama {
            ["", ""]
        } else {
            ["t1", "t2"]
        };
        assert_eq!(
            answer.turn.calls,
            [
                call(ids[0], "read_file", json!({"path": "a"})),
                call(ids[1], "list_files", json!({}))
            ],
            "{protocol:?}"
        );
        // Signatures of thoughts come back as they came.
        let conversation = Conversation {
            turns: vec![Turn::Model(answer.turn)],
            ..Conversation::default()
        };
        let request = protocol
            .request("m", &conversation, Limits::default())
            .to_string();
        match protocol {
            Protocol::Anthropic => assert!(request.contains(r#""signature":"s""#), "{request}"),
            Protocol::Gemini => assert!(
                request.contains(r#""thoughtSignature":"c2ln""#),
                "{request}"
            ),
            Protocol::Openai | Protocol::Ollama => {}
        }
    }
}

#[test]
fn arguments_that_are_none_are_kept_and_sent_back_as_an_empty_object() {
    let bodies = [
        json!({"content": [{"type": "tool_use", "id": "t", "name": "f", "input": [1]}]}),
        json!({"choices": [{"message": {"tool_calls": [{"function": {"name": "f", "arguments": "{\"path\": "}}]}}]}),
        json!({"candidates": [{"content": {"parts": [{"functionCall": {"name": "f", "args": [1]}}]}}]}),
        json!({"message": {"tool_calls": [{"function": {"name": "f", "arguments": "{\"path\": "}}]}}),
    ];
    for (protocol, body) in PROTOCOLS.into_iter().zip(bodies) {
        let answer = read(protocol, &body);
        let arguments = answer.turn.calls[0].arguments.clone();
        assert!(!arguments.is_object(), "{protocol:?}: {arguments}");
        assert!(answer.usage.is_none());
        let conversation = Conversation {
            turns: vec![Turn::Model(answer.turn)],
            ..Conversation::default()
        };
        let request = protocol
            .request("m", &conversation, Limits::default())
            .to_string();
        assert!(
            !request.contains("path") && !request.contains("[1]"),
            "{request}"
        );
    }
    // Without an id a call of Anthropic's cannot be answered; of others it is told by its place.
    let body = json!({"content": [{"type": "tool_use", "name": "f", "input": {}}]});
    let none = Protocol::Anthropic.answer(body.to_string().as_bytes());
    assert_eq!(none, Err(AnswerError::Form));
    let body = json!({"choices": [{"message": {"tool_calls": [
        {"id": "", "function": {"name": "f", "arguments": {"a": 1}}}, {"function": {"name": "g"}}]}}]});
    let calls = read(Protocol::Openai, &body).turn.calls;
    assert_eq!(
        calls,
        [
            call("call_0", "f", json!({"a": 1})),
            call("call_1", "g", json!({}))
        ]
    );
}

#[test]
fn every_end_is_known_for_what_it_is_and_others_are_unknown() {
    let with = |protocol, reason: &str| match protocol {
        Protocol::Anthropic => json!({"content": [], "stop_reason": reason}),
        Protocol::Openai => {
            json!({"choices": [{"message": {"content": null}, "finish_reason": reason}]})
        }
        Protocol::Gemini => json!({"candidates": [{"finishReason": reason}]}),
        Protocol::Ollama => json!({"message": {"content": ""}, "done_reason": reason}),
    };
    for (protocol, reason, expected) in [
        (Protocol::Anthropic, "end_turn", Finish::Complete),
        (Protocol::Anthropic, "max_tokens", Finish::Cut),
        (Protocol::Anthropic, "refusal", Finish::Declined),
        (Protocol::Openai, "stop", Finish::Complete),
        (Protocol::Openai, "length", Finish::Cut),
        (Protocol::Openai, "content_filter", Finish::Declined),
        (Protocol::Gemini, "STOP", Finish::Complete),
        (Protocol::Gemini, "MAX_TOKENS", Finish::Cut),
        (Protocol::Gemini, "SAFETY", Finish::Declined),
        (Protocol::Gemini, "MALFORMED_FUNCTION_CALL", Finish::Unknown),
        (Protocol::Ollama, "stop", Finish::Complete),
        (Protocol::Ollama, "length", Finish::Cut),
        (Protocol::Ollama, "load", Finish::Unknown),
    ] {
        let answer = read(protocol, &with(protocol, reason));
        assert_eq!(answer.finish, expected, "{protocol:?} {reason}");
        assert_eq!(answer.turn, ModelTurn::default(), "{protocol:?} {reason}");
    }
    for protocol in PROTOCOLS {
        let answer = read(protocol, &with(protocol, "because"));
        assert_eq!(answer.finish, Finish::Unknown);
    }
    let blocked = json!({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 3}});
    let answer = read(Protocol::Gemini, &blocked);
    assert_eq!(
        (answer.finish, answer.usage),
        (Finish::Declined, usage(3, 0))
    );
    let refused = json!({"choices": [{"message": {"content": null, "refusal": "no"}, "finish_reason": "stop"}]});
    assert_eq!(read(Protocol::Openai, &refused).finish, Finish::Declined);
}

#[test]
fn what_is_no_answer_is_refused() {
    for protocol in PROTOCOLS {
        for body in ["", "<html>", "[]", "{}", "null", "7", &"[".repeat(100_000)] {
            let none = protocol.answer(body.as_bytes());
            assert_eq!(none, Err(AnswerError::Form), "{protocol:?} {:.10}", body);
        }
    }
    let error = json!({"error": "model runner has stopped"}).to_string();
    let none = Protocol::Ollama.answer(error.as_bytes());
    assert_eq!(none, Err(AnswerError::Failure));
    let empty = json!({"choices": []}).to_string();
    assert_eq!(
        Protocol::Openai.answer(empty.as_bytes()),
        Err(AnswerError::Form)
    );
}

fn value() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just("content"),
        Just("type"),
        Just("text"),
        Just("tool_use"),
        Just("choices"),
        Just("message"),
        Just("candidates"),
        Just("parts"),
        Just("functionCall"),
        Just("tool_calls"),
        Just("function"),
        Just("arguments"),
        Just("name"),
        Just("usage"),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 4, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(word.clone().prop_map(str::to_owned), inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    /// Whatever comes, it is an answer or an error; and what is an answer can be sent back.
    #[test]
    fn any_json_is_an_answer_or_an_error(body in value()) {
        for protocol in PROTOCOLS {
            if let Ok(answer) = protocol.answer(body.to_string().as_bytes()) {
                let conversation = Conversation { turns: vec![Turn::Model(answer.turn)], ..Conversation::default() };
                prop_assert!(protocol.request("m", &conversation, Limits::default()).is_object());
            }
        }
    }
}
