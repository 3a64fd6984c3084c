//! Somebody changes what was signed.

use caretaker::receipts::{Expectation, Token};

use super::desk::{
    GATE, asked, chain_of, gate, receipted, said, token, trusting, verdict, verified, verified_with,
};

const PURPOSE: &str = r#"{"statement":"Mend the parser","tools":["Edit"],"constraints":{"starts_with":{"path":"src/"}}}"#;

#[test]
fn every_changed_byte_of_a_token_is_denied() {
    let token = token("Edit", r#"{"max_value":{"amount":10}}"#, Some(PURPOSE));
    let text = token.to_text();
    let gate = gate();
    let call = r#"{"amount":1,"path":"src/a"}"#;
    assert_eq!(said(&asked(&gate, &token, &[], "Edit", call)), "ALLOW");
    for place in 0..text.len() {
        for change in [1, 2, 0x20] {
            let mut bytes = text.clone().into_bytes();
            bytes[place] ^= change;
            let Ok(changed) = Token::parse(&bytes) else {
                continue;
            };
            let told = said(&asked(&gate, &changed, &[], "Edit", call));
            assert_ne!(told, "ALLOW", "byte {place} of {text}");
        }
    }
}

#[test]
fn every_changed_byte_of_a_chain_is_found() {
    let token = token("Edit", "{}", Some(PURPOSE));
    let file = receipted(&gate(), &token, "Edit", r#"{"path":"src/a"}"#);
    assert_eq!(verdict(&verified(&file)), "valid");
    let (root, receipt) = file.split_once('\n').unwrap();
    for place in 0..receipt.len() - 1 {
        let mut bytes = receipt.as_bytes().to_vec();
        bytes[place] ^= 1;
        let Ok(changed) = String::from_utf8(bytes) else {
            continue;
        };
        let report = verified(&format!("{root}\n{changed}"));
        assert!(!report.valid(), "byte {place} of {receipt}");
        // With the stated name made to fit, what is signed is still another.
        let Some(jws) = changed
            .split("\"jws\":\"")
            .nth(1)
            .and_then(|rest| rest.split('"').next())
        else {
            continue;
        };
        let hash = caretaker::receipts::ReceiptHash::of(jws);
        let fitted = format!("{{\"receipt_hash\":\"{hash}\",\"jws\":\"{jws}\"}}\n");
        if fitted != receipt {
            assert!(
                !verified(&format!("{root}\n{fitted}")).valid(),
                "byte {place} of {receipt}"
            );
        }
    }
}

#[test]
fn a_line_with_another_name_is_no_receipt() {
    let (lines, _) = chain_of(2);
    let other: serde_json::Value = serde_json::from_str(&lines[1]).unwrap();
    let own: serde_json::Value = serde_json::from_str(&lines[2]).unwrap();
    let exchanged = lines[2].replace(
        own["receipt_hash"].as_str().unwrap(),
        other["receipt_hash"].as_str().unwrap(),
    );
    let told = verdict(&verified(&format!("{}{}{exchanged}", lines[0], lines[1])));
    assert_eq!(
        told,
        "line 3: the receipt_hash is not that of the jws: the record was tampered with"
    );
}

#[test]
fn a_dropped_or_moved_line_is_found() {
    let (lines, _) = chain_of(4);
    assert_eq!(verdict(&verified(&lines.concat())), "valid");
    for dropped in 1..4 {
        let mut fewer = lines.clone();
        fewer.remove(dropped);
        let told = verdict(&verified(&fewer.concat()));
        assert!(
            told.contains("the receipt does not follow the one before it"),
            "{told}"
        );
    }
    let mut moved = lines.clone();
    moved.swap(2, 3);
    assert!(!verified(&moved.concat()).valid());
    let mut twice = lines.clone();
    twice.insert(3, lines[2].clone());
    assert!(!verified(&twice.concat()).valid());
    // Another session's receipts do not fit in, signed by the same key.
    let spliced = [&lines[..2], &chain_of(1).0[..]].concat();
    assert!(!verified(&spliced.concat()).valid());
}

#[test]
fn a_dropped_head_is_found() {
    let (lines, _) = chain_of(3);
    let told = verdict(&verified(&lines[1..].concat()));
    assert_eq!(
        told,
        "line 1: the chain begins with seq 1, not with its root"
    );
}

#[test]
fn a_dropped_tail_is_found_against_the_head() {
    let (lines, chain) = chain_of(4);
    let expected = Expectation::from(chain.head());
    let judged = |lines: &[String], expected: &Expectation| {
        verdict(&verified_with(
            &lines.concat(),
            &trusting(&[GATE]),
            &[],
            expected,
        ))
    };
    assert_eq!(judged(&lines, &expected), "valid");
    // The file alone does not show it; that is why the head is kept elsewhere.
    assert_eq!(judged(&lines[..3], &Expectation::default()), "valid");
    let told = judged(&lines[..3], &expected);
    assert!(
        told.starts_with(
            "line 3: 3 receipts, but 5 were written\nline 3: the last receipt is not sha256:"
        ),
        "{told}"
    );
    let count = Expectation {
        count: Some(5),
        head: None,
    };
    assert_ne!(judged(&lines[..4], &count), "valid");
    let head = Expectation {
        count: None,
        ..expected
    };
    assert_ne!(judged(&lines[..4], &head), "valid");
    assert_eq!(verified(&lines.concat()).head, Some(chain.head()));
}

#[test]
fn an_empty_file_proves_nothing() {
    assert_eq!(verdict(&verified("")), "line 0: there is no receipt");
    assert_eq!(verdict(&verified("\n\n")), "line 0: there is no receipt");
}
