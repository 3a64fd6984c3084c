//! Keys and notes that others published.

use caretaker::log::{
    KeyName, LogKeyError, NoteError, SignatureType, SignedCheckpoint, SignedNote, VerifierKey,
    read_signing_key,
};

/// The example of C2SP signed-note, "Verifier keys".
const EXAMPLE_KEY: &str = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k";
const EXAMPLE: &str = "This is an example message.\n\n\u{2014} example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n";

/// The keys and signatures of Go's note package.
const PETER_KEY: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
const PETER_SECRET: &str =
    "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz";
const ENOCH_KEY: &str = "EnochRoot+af0cfe78+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop";
const TEXT: &str = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n";
const PETER: &str = "\u{2014} PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";
const ENOCH: &str = "\u{2014} EnochRoot rwz+eBzmZa0SO3NbfRGzPCpDckykFXSdeX+MNtCOXm2/5n2tiOHp+vAF1aGrQ5ovTG01oOTGwnWLox33WWd1RvMc+QQ=\n";

fn key(text: &str) -> VerifierKey {
    text.parse().unwrap()
}

fn note(lines: &[&str]) -> SignedNote {
    let note = format!("{TEXT}\n{}", lines.concat());
    SignedNote::parse(note.as_bytes()).unwrap()
}

/// Who signed, by name, in the order found.
fn signers(lines: &[&str], keys: &[VerifierKey]) -> Result<Vec<String>, NoteError> {
    let note = note(lines);
    let signers = note.verify(keys)?;
    Ok(signers
        .iter()
        .map(|signer| signer.key.name().to_string())
        .collect())
}

#[test]
fn published_notes_verify_with_published_keys() {
    let example = SignedNote::parse(EXAMPLE.as_bytes()).unwrap();
    assert_eq!(example.verify(&[key(EXAMPLE_KEY)]).unwrap().len(), 1);
    assert_eq!(example.to_string(), EXAMPLE);

    let both = [key(PETER_KEY), key(ENOCH_KEY)];
    assert_eq!(
        signers(&[PETER, ENOCH], &both[..1]),
        Ok(vec!["PeterNeumann".to_owned()])
    );
    assert_eq!(
        signers(&[ENOCH, PETER, ENOCH, PETER, PETER], &both),
        Ok(vec!["EnochRoot".to_owned(), "PeterNeumann".to_owned()])
    );
    assert_eq!(signers(&[PETER, ENOCH], &[]), Err(NoteError::Unsigned));
    assert_eq!(signers(&[PETER], &both[1..]), Err(NoteError::Unsigned));
    // A key that is known twice is one key.
    let twice = [key(ENOCH_KEY), key(PETER_KEY), key(ENOCH_KEY)];
    assert_eq!(signers(&[ENOCH], &twice), Ok(vec!["EnochRoot".to_owned()]));

    let longer = format!("{}ABCD{}", &PETER[..60], &PETER[60..]);
    assert!(matches!(
        signers(&[&longer, PETER], &both),
        Err(NoteError::BadSignature { .. })
    ));
    assert_eq!(
        signers(&[&longer, ENOCH], &both[1..]),
        Ok(vec!["EnochRoot".to_owned()])
    );
}

#[test]
fn published_keys_are_read_and_every_damage_is_seen() {
    let (secret, public) = read_signing_key(PETER_SECRET).unwrap();
    assert_eq!(public, key(PETER_KEY));
    assert_eq!(public.to_string(), PETER_KEY);
    assert_eq!(&secret.public(), public.public());
    assert_eq!(public.signature_type(), SignatureType::Log);
    for from in 0..PETER_KEY.len() {
        for to in from + 1..=PETER_KEY.len() {
            if to - from < PETER_KEY.len() {
                PETER_KEY[from..to].parse::<VerifierKey>().unwrap_err();
            }
        }
    }
    for (text, secret) in [(PETER_KEY, false), (PETER_SECRET, true)] {
        for at in 0..text.len() {
            let mut bytes = text.as_bytes().to_vec();
            bytes[at] += 1;
            let text = String::from_utf8(bytes).unwrap();
            let refused = if secret {
                read_signing_key(&text).is_err()
            } else {
                text.parse::<VerifierKey>().is_err()
            };
            assert!(refused, "{text}");
        }
    }
    for text in [
        // Too long, with its hash adjusted; an unknown algorithm, with its hash adjusted; capitals in the id.
        "PeterNeumann+cc469956+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TWBADKEY==",
        "PeterNeumann+173116ae+ZRpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PeterNeumann+C74F20A3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
    ] {
        text.parse::<VerifierKey>().unwrap_err();
    }
    // A point of small order has no place as a key, whatever its id says.
    let weak = "weak+00000000+AQEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    assert!(matches!(
        weak.parse::<VerifierKey>(),
        Err(LogKeyError::Public(_))
    ));
}

#[test]
fn an_error_about_a_secret_does_not_repeat_it() {
    let damaged = PETER_SECRET.replace("c74f20a3", "c74f20a4");
    let error = read_signing_key(&damaged).unwrap_err();
    assert!(
        !format!("{error} {error:?}").contains("AYEKFALV"),
        "{error}"
    );
    let error = read_signing_key(&PETER_SECRET[1..]).unwrap_err();
    assert!(
        !format!("{error} {error:?}").contains("AYEKFALV"),
        "{error}"
    );
}

#[test]
fn names_have_no_spaces_plus_signs_or_control_characters() {
    for name in [
        "example.com/log42",
        "sigsum.org/v1/tree/4d6d",
        "ö.example",
        "oid/1.2.3",
    ] {
        assert_eq!(KeyName::new(name).unwrap().as_str(), name);
    }
    let long = "a".repeat(256);
    for name in [
        "",
        "a b",
        "a+b",
        "a\u{a0}b",
        "a\u{3000}b",
        "a\tb",
        "a\nb",
        "a\u{7f}",
        &long,
    ] {
        KeyName::new(name).unwrap_err();
    }
}

#[test]
fn what_is_not_a_note_is_refused() {
    let good = format!("{TEXT}\n{PETER}");
    SignedNote::parse(good.as_bytes()).unwrap();
    let unsigned = &good[..=TEXT.len()];
    for note in [
        String::new(),
        "\n".to_owned(),
        "\n\n".to_owned(),
        TEXT.to_owned(),
        unsigned.to_owned(),
        good.trim_end().to_owned(),
        format!("\u{1}{good}"),
        good.replace('\n', "\r\n"),
        good.replace('\n', "\r"),
        good.replace("problem", "pro\tblem"),
        good.replace('\u{2014}', "-"),
        good.replace("\u{2014} ", "\u{2014}"),
        good.replace("\u{2014} ", "\u{2014}  "),
        good.replace(" x08", "  x08"),
        good.replace("PeterNeumann", "Peter Neumann"),
        good.replace("PeterNeumann", "Peter+Neumann"),
        good.replace("PeterNeumann", ""),
        format!("{good}Unexpected line.\n"),
        format!("{good}\n"),
        // Not the one spelling of its base64: low bits, padding, alphabet, white space.
        good.replace("nAM=\n", "nAN=\n"),
        good.replace("nAM=\n", "nAM\n"),
        good.replace("nAM=\n", "nAM==\n"),
        good.replace("go/ZJ", "go_ZJ"),
        good.replace("nAM=\n", "nAM= \n"),
        format!("{TEXT}\n\u{2014} name \n"),
        format!("{TEXT}\n\u{2014} name AAAAAA==\n"),
    ] {
        assert!(SignedNote::parse(note.as_bytes()).is_err(), "{note}");
    }
    let mut bytes = good.into_bytes();
    bytes[3] = 0xff;
    assert_eq!(SignedNote::parse(&bytes), Err(NoteError::NotUtf8 { at: 3 }));
}

#[test]
fn an_empty_line_in_the_text_is_of_the_text() {
    let text = format!("{TEXT}\n{TEXT}");
    let note = SignedNote::parse(format!("{text}\n{PETER}").as_bytes()).unwrap();
    assert_eq!(note.text(), text);
    assert!(matches!(
        note.verify(&[key(PETER_KEY)]),
        Err(NoteError::BadSignature { .. })
    ));
}

#[test]
fn the_published_checkpoint_with_its_cosignature_is_read() {
    // The example of C2SP tlog-cosignature; its keys are not published.
    let example = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n\u{2014} example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n\u{2014} witness.example.com/w1 jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==\n";
    let signed = SignedCheckpoint::parse(example.as_bytes()).unwrap();
    assert_eq!(signed.to_string(), example);
    let claimed = signed.claimed();
    assert_eq!(claimed.origin().as_str(), "example.com/behind-the-sofa");
    assert_eq!(claimed.head().size(), 20_852_163);
    assert_eq!(claimed.to_string(), signed.note().text());
    let [log, witness] = signed.note().signatures() else {
        panic!("two signature lines");
    };
    assert_eq!(log.hash().to_string(), "033de0ae");
    assert_eq!(witness.hash().to_string(), "8d66cf3f");
    assert_eq!(
        signed.note().verify(&[key(EXAMPLE_KEY)]),
        Err(NoteError::Unsigned)
    );
}
