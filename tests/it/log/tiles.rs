//! Tree and entries as files: paths, contents, and proofs that are made from files alone.

use std::collections::{BTreeSet, HashMap};

use caretaker::log::{
    BundleError, HashTile, MAX_BUNDLE, MAX_ENTRY, MAX_SIZE, Node, ProofPlan, TileError, TileId,
    TileKind, read_entries, verify_inclusion, write_entries,
};
use proptest::prelude::*;

use super::scene::{Stored, entry, leaf};

fn hashes(level: u8, index: u64, width: u16) -> TileId {
    TileId::new(TileKind::Hashes { level }, index, width).unwrap()
}

fn entries(index: u64, width: u16) -> TileId {
    TileId::new(TileKind::Entries, index, width).unwrap()
}

#[test]
fn paths_are_those_of_the_specification() {
    let paths = [
        (hashes(0, 1_234_067, 256), "tile/0/x001/x234/067"),
        (hashes(0, 0, 256), "tile/0/000"),
        (hashes(1, 999, 17), "tile/1/999.p/17"),
        (hashes(2, 1_000, 1), "tile/2/x001/000.p/1"),
        (entries(67, 255), "tile/entries/067.p/255"),
        (entries(1_000_000, 256), "tile/entries/x001/x000/000"),
    ];
    for (tile, path) in paths {
        assert_eq!(tile.to_string(), path);
        assert_eq!(TileId::parse(path), Ok(tile));
    }
}

#[test]
fn the_tiles_of_a_log_are_those_of_the_specifications_examples() {
    let tiles: Vec<TileId> = TileId::grown(0, 70_000).collect();
    let of_level = |level| {
        let kind = TileKind::Hashes { level };
        tiles.iter().filter(move |tile| tile.kind() == kind)
    };
    assert_eq!(of_level(0).filter(|tile| tile.is_full()).count(), 273);
    let partial = |level| of_level(level).find(|tile| !tile.is_full()).copied();
    assert_eq!(partial(0), Some(hashes(0, 273, 112)));
    assert_eq!(of_level(1).filter(|tile| tile.is_full()).count(), 1);
    assert_eq!(partial(1), Some(hashes(1, 1, 17)));
    assert_eq!(of_level(2).count(), 1);
    assert_eq!(partial(2), Some(hashes(2, 0, 1)));
    assert_eq!(of_level(3).count(), 0);

    let tiles: Vec<TileId> = TileId::grown(0, 256).collect();
    assert_eq!(tiles, [entries(0, 256), hashes(0, 0, 256), hashes(1, 0, 1)]);
    assert_eq!(TileId::grown(256, 256).count(), 0);
    assert_eq!(TileId::grown(0, 0).count(), 0);
}

#[test]
fn a_tile_has_one_path() {
    for path in [
        "",
        "tile",
        "tile/",
        "tile/0",
        "tile/0/",
        "/tile/0/000",
        "tile/0/000/",
        "tile/00/000",
        "tile/+0/000",
        "tile/-1/000",
        "tile/256/000",
        "tile/data/000",
        "tile/Entries/000",
        "tile/0/0",
        "tile/0/00",
        "tile/0/0000",
        "tile/0/x000",
        "tile/0/x000/067",
        "tile/0/001/067",
        "tile/0/x001/x067",
        "tile/0/x01/067",
        "tile/0/X001/067",
        "tile/0/x001//067",
        "tile/0/x001\\067",
        "tile/0/000.p/0",
        "tile/0/000.p/256",
        "tile/0/000.p/01",
        "tile/0/000.p/",
        "tile/0/000.p/1.p/1",
        "tile/0/000.p/65536",
        "tile/0/000.P/1",
        "tile/0/../000",
        "tile/0/0\u{664}0",
        "tile/0/ 00",
        "tile/0/000\n",
        "tile/entries/000?",
        "checkpoint",
    ] {
        assert!(TileId::parse(path).is_err(), "{path}");
    }
    let long = format!("tile/0/{}067", "x001/".repeat(100_000));
    assert!(matches!(TileId::parse(&long), Err(TileError::Path { .. })));
}

#[test]
fn tiles_that_no_log_has_are_refused() {
    for path in [
        "tile/8/000.p/1",
        "tile/63/000",
        "tile/7/001.p/1",
        "tile/7/000",
        "tile/7/000.p/128",
        "tile/0/x036/x028/x797/x018/x963/968.p/1",
        "tile/entries/x036/x028/x797/x018/x963/967",
    ] {
        assert!(
            matches!(TileId::parse(path), Err(TileError::NoSuchTile { .. })),
            "{path}"
        );
    }
    // The last ones that a log of 2^63-1 leaves has.
    for path in [
        "tile/7/000.p/127",
        "tile/0/x036/x028/x797/x018/x963/967.p/255",
        "tile/entries/x036/x028/x797/x018/x963/967.p/255",
    ] {
        assert_eq!(TileId::parse(path).unwrap().to_string(), path);
    }
}

#[test]
fn proofs_are_made_from_tiles_alone() {
    let size = 66_000;
    let stored = Stored::of(66_000);
    let mut files = HashMap::new();
    for id in TileId::grown(0, size) {
        if id.kind() == TileKind::Entries {
            continue;
        }
        let content = HashTile::nodes(id).map(|node| stored.nodes[&node]);
        let tile = HashTile::new(id, content.collect()).unwrap();
        files.insert(id.to_string(), tile.to_bytes());
    }
    assert_eq!(files.len(), 258 + 2 + 1);
    let read = |node: Node| {
        let id = TileId::holding(node, size)?;
        let tile = HashTile::parse(id, &files[&id.to_string()])?;
        tile.node(node).ok_or(TileError::NotYet {
            size,
            level: node.level(),
            index: node.index(),
        })
    };
    for index in [0, 1, 255, 256, 65_535, 65_536, 65_791, 65_999, 40_000] {
        let plan = ProofPlan::inclusion(index, size).unwrap();
        let proof = plan.build(read).unwrap();
        let entry = leaf(usize::try_from(index).unwrap());
        verify_inclusion(entry, index, &proof, &stored.head()).unwrap();
        let plan = ProofPlan::consistency(index + 1, size).unwrap();
        assert_eq!(plan.build(read).unwrap(), stored.build(&plan));
    }
    // A node that is not complete yet is in no tile.
    for (level, index) in [(0, size), (4, 4_125), (16, 1), (17, 0)] {
        let node = Node::new(level, index).unwrap();
        assert!(TileId::holding(node, size).is_err(), "{node:?}");
    }
    TileId::holding(Node::new(0, 0).unwrap(), MAX_SIZE + 1).unwrap_err();
}

#[test]
fn a_tile_gives_only_the_nodes_it_holds() {
    let stored = Stored::of(600);
    let id = hashes(0, 1, 256);
    let content: Vec<_> = HashTile::nodes(id)
        .map(|node| stored.nodes[&node])
        .collect();
    let tile = HashTile::new(id, content.clone()).unwrap();
    for (node, hash) in &stored.nodes {
        let held = node.level() < 8 && (256..512).contains(&node.first_leaf());
        assert_eq!(tile.node(*node), held.then_some(*hash), "{node:?}");
    }
    assert_eq!(
        HashTile::parse(id, &tile.to_bytes()).unwrap().hashes(),
        content
    );
    let bytes = tile.to_bytes();
    for wrong in [
        &bytes[1..],
        &bytes[..0],
        &bytes[..32 * 255],
        &[&bytes[..], &[0]].concat(),
    ] {
        assert!(matches!(
            HashTile::parse(id, wrong),
            Err(TileError::Length { .. })
        ));
    }
    HashTile::new(id, content[1..].to_vec()).unwrap_err();
    HashTile::parse(entries(0, 1), &bytes[..32]).unwrap_err();
}

proptest! {
    #[test]
    fn growing_in_steps_publishes_what_a_reader_needs(steps in prop::collection::vec(0_u64..2_000, 1..6)) {
        let mut published = BTreeSet::new();
        let mut size = 0;
        for step in steps {
            published.extend(TileId::grown(size, size + step));
            size += step;
            let needed: BTreeSet<_> = TileId::grown(0, size).collect();
            prop_assert!(published.is_superset(&needed));
        }
    }

    #[test]
    fn every_tile_is_found_again_by_its_path(level in 0_u8..8, index in any::<u64>(), width in 1_u16..=256) {
        let kind = TileKind::Hashes { level };
        if let Ok(tile) = TileId::new(kind, index >> (8 * level), width) {
            prop_assert_eq!(TileId::parse(&tile.to_string()), Ok(tile));
            prop_assert!(tile.first_leaf() <= MAX_SIZE);
        }
    }
}

#[test]
fn a_bundle_holds_exactly_its_entries() {
    let all: Vec<_> = (0..256).map(entry).collect();
    let bundle = write_entries(&all).unwrap();
    assert_eq!(read_entries(&bundle, 256).unwrap(), all);
    assert_eq!(&bundle[..9], b"\x00\x07entry 0");
    let cut_off = |width| Err(BundleError::CutOff { entry: 255, width });
    assert_eq!(read_entries(&bundle[..bundle.len() - 1], 256), cut_off(256));
    assert_eq!(
        read_entries(&bundle, 255),
        Err(BundleError::Trailing {
            extra: 2 + all[255].len(),
            width: 255
        })
    );
    for width in [0, 257, u16::MAX] {
        assert!(matches!(
            read_entries(&bundle, width),
            Err(BundleError::Count { .. })
        ));
    }
    assert!(matches!(
        write_entries::<Vec<u8>>(&[]),
        Err(BundleError::Count { count: 0 })
    ));
    write_entries(&[b"a"; 257]).unwrap_err();
    // The longest entry fits, one byte more does not: nothing is cut silently.
    let longest = vec![vec![7; MAX_ENTRY]; 256];
    let bundle = write_entries(&longest).unwrap();
    assert_eq!(bundle.len(), MAX_BUNDLE);
    assert_eq!(read_entries(&bundle, 256).unwrap(), longest);
    assert_eq!(
        write_entries(&[vec![7; MAX_ENTRY + 1]]),
        Err(BundleError::TooLong {
            entry: 0,
            length: MAX_ENTRY + 1
        })
    );
}
