//! What embedders answer, what stands in audit streams, and texts that are cut into pieces.

use caretaker::embedder::embedded::wordpiece::{MOST_PIECES, WordPiece};
use caretaker::embedder::http::answer;
use caretaker::intent::{Calibration, Observed, observed};

use super::{Target, words};

pub(super) fn targets() -> Vec<Target> {
    vec![embeddings(), stream(), pieces()]
}

/// What is taken is one vector a text, even and finite.
fn embeddings() -> Target {
    let good = [
        r#"{"object":"list","data":[{"object":"embedding","index":1,"embedding":[0.25,-1e-3]},{"object":"embedding","index":0,"embedding":[1,0]}],"model":"m","usage":{"prompt_tokens":8,"total_tokens":8}}"#,
        r#"{"data":[{"embedding":[0.5,null]},{"embedding":[1e39,2]}]}"#,
        r#"{"data":[{"embedding":[1]},{"embedding":[2]}]}"#,
    ];
    let good = good.map(|text| text.as_bytes().to_vec()).to_vec();
    Target::new("embeddings", good, |bytes| {
        let vectors = answer::read(bytes, 2, None).map_err(words)?;
        assert_eq!(vectors.len(), 2);
        let [one, other] = [0, 1].map(|place| vectors.get(place).map_or(0, Vec::len));
        assert!(one == other && one > 0);
        assert!(vectors.iter().flatten().all(|number| number.is_finite()));
        Ok(())
    })
}

/// A stream is read to its end, and its scores are those of its lines.
fn stream() -> Target {
    let line = |score: &str| {
        format!(
            r#"{{"event":"intent_alignment","ts":"2027-01-15T08:00:00Z","task_id":"t","fields":{{"tool":"shell","score":{score},"decision":"warn","reason":"r"}}}}"#
        )
    };
    let good = vec![
        format!("{}\n{}\n", line("0.5"), line("\"NaN\"")).into_bytes(),
        format!("{}\r\n\n{{\"event\":\"gate_decision\"}}", line("-1")).into_bytes(),
    ];
    let mut target = Target::new("scores", good, |bytes| {
        let (mut scored, mut unscored, mut other, mut unreadable) = (0_u64, 0, 0, 0);
        for line in bytes.split(|byte| *byte == b'\n') {
            if line.trim_ascii().is_empty() {
                continue;
            }
            *match observed(line) {
                Observed::Scored(..) => &mut scored,
                Observed::Unscored(_) => &mut unscored,
                Observed::Other => &mut other,
                Observed::Unreadable => &mut unreadable,
            } += 1;
        }
        // Making room for all scores is the larger part of reading, so that is not done each time.
        if scored > 1 {
            let mut calibration = Calibration::default();
            calibration.read(&mut &bytes[..]).map_err(words)?;
            assert_eq!(calibration.scored(), scored);
            assert_eq!(calibration.unreadable(), unreadable);
        }
        if scored == 0 {
            return Err(format!("{} {} {}", unscored > 0, other > 0, unreadable > 0));
        }
        Ok(())
    });
    target.longest = 20_000;
    target
}

/// Any text is a bounded number of pieces.
fn pieces() -> Target {
    let vocabulary = "[UNK]\n[CLS]\n[SEP]\nread\na\n##s\n##e\n{\n.\n";
    let good = vec![
        b"Read a file, as {\"path\": \"src/lib.rs\"}".to_vec(),
        "caf\u{e9} \u{4e2d}\u{6587} e\u{301}\u{302} \u{200b}reads"
            .as_bytes()
            .to_vec(),
    ];
    Target::new("pieces", good, move |bytes| {
        let model = WordPiece::new(vocabulary).map_err(words)?;
        let ids = model.pieces(super::text(bytes)?);
        assert!((2..=MOST_PIECES).contains(&ids.len()));
        assert!(ids.iter().all(|id| *id < 9));
        Ok(())
    })
}
