//! A log as `caretaker log export` writes it, with a checkpoint at several sizes.

use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;

use caretaker::audit::log_origin;
use caretaker::log::{
    Checkpoint, Frontier, HashTile, Leaf, LogSigner, Record, TILE_WIDTH, TileId, TileKind,
    TreeHash, write_entries,
};

use super::incidents::{envelopes, log_key, nothing_yet, trust_root};
use crate::Tried;
use crate::ledger::NOW;

/// Incidents whose events lie between each other.
const NEIGHBOURS: u64 = 16;
/// Levels of the tree that a tile spans.
const HEIGHT: u8 = 8;

/// Writes a log that goes on until the last of `sizes` and can be read at each of them: in `FOLDER/SIZE`, where SIZE is a number of
/// events. What is there already is left as it is.
pub(crate) fn write(folder: &Path, sizes: &[u64]) -> Tried<()> {
    let wanted: Vec<_> = sizes.iter().map(|size| at(folder, *size)).collect();
    if wanted.iter().all(|place| place.join("checkpoint").exists()) {
        return Ok(());
    }
    let mut writer = Writer::new(folder)?;
    writer.append(&trust_root()?.to_bytes()?)?;
    let nothing_yet = nothing_yet()?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let mut channels = Vec::new();
        for thread in 0..threads {
            let (sender, receiver) = sync_channel(4);
            channels.push(receiver);
            let nothing_yet = &nothing_yet;
            let own = (0_u64..).skip(thread).step_by(threads);
            // Ends when nobody takes it any more.
            scope.spawn(move || {
                own.map(|turn| neighbours(nothing_yet, turn))
                    .try_for_each(|events| sender.send(events))
            });
        }
        let (mut events, mut sizes) = (0, sizes.iter().copied().peekable());
        for turn in 0_usize.. {
            writer.heartbeat(turn)?;
            let made = channels.get(turn % threads).ok_or("no thread")?.recv()?;
            for envelope in made {
                writer.append(&envelope)?;
                events += 1;
                if sizes.next_if_eq(&events).is_some() {
                    writer.checkpoint(events)?;
                }
                if sizes.peek().is_none() {
                    return writer.write_tiles(1);
                }
            }
        }
        Ok(())
    })
}

/// Where the log is that ends after this many events.
pub(crate) fn at(folder: &Path, events: u64) -> PathBuf {
    folder.join(events.to_string())
}

fn neighbours(nothing_yet: &crate::ledger::Ledger, turn: u64) -> Vec<Vec<u8>> {
    let numbers = turn * NEIGHBOURS..(turn + 1) * NEIGHBOURS;
    let chains: Vec<_> = numbers
        .map(|number| envelopes(nothing_yet, number))
        .collect();
    let longest = chains.iter().map(Vec::len).max().unwrap_or(0);
    let turns =
        (0..longest).flat_map(|event| chains.iter().filter_map(move |chain| chain.get(event)));
    turns.cloned().collect()
}

struct Writer {
    folder: PathBuf,
    signer: LogSigner,
    tree: Frontier,
    entries: Vec<Vec<u8>>,
    /// The hashes of each row of tiles that no file has yet, and how many tiles of it are written.
    rows: [(Vec<TreeHash>, u64); 4],
}

impl Writer {
    fn new(folder: &Path) -> Tried<Self> {
        std::fs::create_dir_all(folder.join("root"))?;
        std::fs::write(folder.join("root/1.json"), trust_root()?.to_bytes()?)?;
        Ok(Self {
            folder: folder.to_owned(),
            signer: LogSigner::new(log_origin("example")?, log_key()),
            tree: Frontier::new(),
            entries: Vec::new(),
            rows: std::array::from_fn(|_| (Vec::new(), 0)),
        })
    }

    fn heartbeat(&mut self, turn: usize) -> Tried<()> {
        let at = NOW.plus_millis(i64::try_from(turn)? * 3_600_000);
        self.append(&Leaf::record(Record::Heartbeat { at })?.to_bytes()?)
    }

    fn append(&mut self, leaf: &[u8]) -> Tried<()> {
        let rows = &mut self.rows;
        self.tree
            .append_with(TreeHash::of_leaf(leaf), |node, hash| {
                let row = rows.get_mut(usize::from(node.level() / HEIGHT));
                if let Some((row, _)) = row.filter(|_| node.level() % HEIGHT == 0) {
                    row.push(hash);
                }
            })?;
        self.entries.push(leaf.to_vec());
        self.write_tiles(usize::from(TILE_WIDTH))
    }

    /// Writes what is at least this wide.
    fn write_tiles(&mut self, least: usize) -> Tried<()> {
        if self.entries.len() >= least {
            let index = (self.tree.size() - 1) / u64::from(TILE_WIDTH);
            let width = u16::try_from(self.entries.len())?;
            let tile = TileId::new(TileKind::Entries, index, width)?;
            self.file(tile, &write_entries(&self.entries)?)?;
            self.entries.clear();
        }
        for (level, place) in (0_u8..).zip(0..self.rows.len()) {
            let (hashes, index) = std::mem::take(&mut self.rows[place]);
            self.rows[place] = if hashes.len() >= least {
                let width = u16::try_from(hashes.len())?;
                let tile = TileId::new(TileKind::Hashes { level }, index, width)?;
                self.file(tile, &HashTile::new(tile, hashes)?.to_bytes())?;
                (Vec::new(), index + 1)
            } else {
                (hashes, index)
            };
        }
        Ok(())
    }

    fn file(&self, tile: TileId, bytes: &[u8]) -> Tried<()> {
        let path = self.folder.join(tile.to_string());
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        Ok(std::fs::write(path, bytes)?)
    }

    /// A folder in which the log ends here. Its tiles are the whole log's: a tile that is wider now begins with what it was.
    fn checkpoint(&self, events: u64) -> Tried<()> {
        let place = at(&self.folder, events);
        std::fs::create_dir_all(&place)?;
        for shared in ["root", "tile"] {
            let link = place.join(shared);
            if !link.exists() {
                std::os::unix::fs::symlink(Path::new("..").join(shared), link)?;
            }
        }
        let checkpoint = Checkpoint::new(log_origin("example")?, self.tree.head());
        let note = self.signer.sign(checkpoint)?.to_string();
        Ok(std::fs::write(place.join("checkpoint"), note)?)
    }
}
