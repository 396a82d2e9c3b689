//! The system calls under the store: opens that follow no link and wait for no FIFO, atomic writes, locks, appends.
//!
//! `O_NOFOLLOW` guards the last part of a path only. The folders above it are the system temp folder, which the kernel
//! protects with its sticky bit, the user's own configuration folder, and folders that [`private_dir`] vouches for.

#![allow(clippy::disallowed_methods, reason = "this file is the door that the ban points to")]

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, UNIX_EPOCH};

use rustix::fs::{CWD, OFlags, RenameFlags};

const SAFE: i32 = (OFlags::NOFOLLOW.bits() | OFlags::NONBLOCK.bits() | OFlags::CLOEXEC.bits()) as i32;

/// Opens a private file for reading: no link followed, no FIFO waited for, regular, owned by this user.
///
/// None when it is missing or is anything else; an error only for what the system reports beyond that.
pub fn open_private(path: &Path) -> io::Result<Option<File>> {
    match OpenOptions::new().read(true).custom_flags(SAFE).open(path) {
        Ok(file) => Ok(own_regular(&file)?.then_some(file)),
        Err(error) if absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Opens a file that the user or the client owns the name of (a transcript, a config): links are followed, but a FIFO
/// is not waited for and only a regular file counts.
pub fn open_user(path: &Path) -> io::Result<Option<File>> {
    let flags = (OFlags::NONBLOCK.bits() | OFlags::CLOEXEC.bits()) as i32;
    match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => Ok(file.metadata()?.is_file().then_some(file)),
        Err(error) if absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads a private file of at most `max` bytes; none when it is missing, foreign or larger.
pub fn read_private(path: &Path, max: u64) -> io::Result<Option<Vec<u8>>> {
    open_private(path)?.map_or(Ok(None), |file| read_bounded(file, max))
}

/// Reads a user's file of at most `max` bytes, following links; none when it is missing or larger.
pub fn read_user(path: &Path, max: u64) -> io::Result<Option<Vec<u8>>> {
    open_user(path)?.map_or(Ok(None), |file| read_bounded(file, max))
}

/// Reads the last `max` bytes of a private file; none when it is missing or foreign.
pub fn read_private_end(path: &Path, max: u64) -> io::Result<Option<Vec<u8>>> {
    let Some(mut file) = open_private(path)? else { return Ok(None) };
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(max)))?;
    let mut bytes = Vec::with_capacity(size.min(max) as usize + 1);
    file.take(max).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

fn read_bounded(file: File, max: u64) -> io::Result<Option<Vec<u8>>> {
    let size = file.metadata()?.len();
    if size > max {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(size as usize + 1);
    file.take(max + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= max).then_some(bytes))
}

fn own_regular(file: &File) -> io::Result<bool> {
    let meta = file.metadata()?;
    Ok(meta.is_file() && is_own(&meta))
}

/// Whether a file or folder belongs to this user.
pub fn is_own(meta: &fs::Metadata) -> bool {
    meta.uid() == rustix::process::geteuid().as_raw()
}

fn absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
        || error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error())
}

/// Makes `path` (and what is missing above it) a folder for this user alone, and refuses one that is a link, foreign,
/// or writable by others.
pub fn private_dir(path: &Path) -> io::Result<()> {
    if let Err(error) = DirBuilder::new().recursive(true).mode(0o700).create(path)
        && error.kind() != io::ErrorKind::AlreadyExists
    {
        return Err(error);
    }
    let meta = fs::symlink_metadata(path)?;
    if !meta.is_dir() || meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other(format!("{} is not a folder of this user", path.display())));
    }
    if meta.mode() & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Makes the folders above `path` where they are missing, for this user alone; existing ones keep their mode.
pub fn parent_dir(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.exists() => DirBuilder::new().recursive(true).mode(0o700).create(parent),
        _ => Ok(()),
    }
}

/// The largest file that is overwritten where it stands, in bytes.
const SMALL: u64 = 2048;

/// What a replaced file must outlive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlives {
    /// This process: for state in the temp folder, which the next boot forgets anyway.
    Process,
    /// A crash of the system, as far as the file system sees to it by itself.
    Crash,
    /// A loss of power: the bytes are on disk before the name changes.
    PowerLoss,
}

/// Replaces `path` by `bytes` in one step, mode 0600. A link at `path` is replaced, never written through.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(path, &[bytes], 0o600, Outlives::Crash)
}

/// Like [`write_atomic`], the bytes in parts: for what is large and lies about in pieces.
pub fn write_atomic_parts(path: &Path, parts: &[&[u8]], outlives: Outlives) -> io::Result<()> {
    replace(path, parts, 0o600, outlives)
}

/// Overwrites a small private file where it stands, in one write, if the new content is as long as the old or at most
/// `pad` bytes shorter, and then filled up with blanks. False where that cannot be: then the file must be replaced.
///
/// Making and removing files is what a hook's time goes to: ext4 passes over every inode that was freed in the last
/// minutes. A kill does not tear one write of a few bytes, but a reader without the lock may in theory see a part of it,
/// so this is for what stays harmless then.
pub fn overwrite(path: &Path, bytes: &[u8], pad: usize) -> io::Result<bool> {
    let file = match OpenOptions::new().write(true).custom_flags(SAFE).open(path) {
        Ok(file) if own_regular(&file)? => file,
        _ => return Ok(false),
    };
    let meta = file.metadata()?;
    let fits = (bytes.len()..=bytes.len() + pad).contains(&(meta.len() as usize)) && meta.len() <= SMALL;
    if !fits || meta.nlink() != 1 || meta.mode() & 0o077 != 0 {
        return Ok(false);
    }
    within_limit(meta.len())?;
    let mut content = bytes.to_vec();
    content.resize(meta.len() as usize, b' ');
    Ok(file.write_at(&content, 0).is_ok_and(|written| written == content.len()))
}

/// Replaces a file that belongs to the user (settings.json, CLAUDE.md): a link stays a link and its target is
/// replaced, the mode is kept (0600 for a new file), and the bytes are on disk before the name changes.
pub fn write_user(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = resolve_links(path)?;
    let mode = match fs::metadata(&target) {
        Ok(meta) if !meta.is_file() => return Err(io::Error::other("not a regular file")),
        Ok(meta) if meta.permissions().readonly() => return Err(io::ErrorKind::PermissionDenied.into()),
        Ok(meta) => meta.mode() & 0o7777,
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0o600,
        Err(error) => return Err(error),
    };
    replace(&target, &[bytes], mode, Outlives::PowerLoss)
}

/// Follows links at the end of `path` to the name that a write must replace, existing or not.
pub fn resolve_links(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_path_buf();
    for _ in 0..40 {
        match fs::read_link(&target) {
            Ok(next) => target = target.parent().unwrap_or(Path::new("/")).join(next),
            Err(_) => return Ok(target),
        }
    }
    Err(io::Error::other("too many links"))
}

fn replace(path: &Path, parts: &[&[u8]], mode: u32, outlives: Outlives) -> io::Result<()> {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    within_limit(parts.iter().map(|part| part.len() as u64).sum())?;
    parent_dir(path)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    let temp = path.with_file_name(temp_name(&name, std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed)));
    let result = (|| {
        // A leftover of a killed process that had our id is ours to replace; create_new never follows a link.
        let _ = fs::remove_file(&temp);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).custom_flags(SAFE).open(&temp)?;
        // Small parts are gathered; a large one goes past the buffer.
        let mut writer = BufWriter::new(&file);
        parts.iter().try_for_each(|part| writer.write_all(part))?;
        writer.flush()?;
        drop(writer);
        if mode != 0o600 {
            file.set_permissions(fs::Permissions::from_mode(mode))?;
        }
        match outlives {
            Outlives::Process => return swap_in(&temp, path),
            Outlives::Crash => {}
            Outlives::PowerLoss => file.sync_all()?,
        }
        fs::rename(&temp, path)
    })();
    if result.is_err() {
        let _ = fs::remove_file(&temp); // nothing half-written stays behind
    }
    result
}

/// What the `n`th file that a process writes is called until it takes the place of the one called `name`.
fn temp_name(name: &str, pid: u32, n: u32) -> String {
    format!(".{name}.{pid}.{n}.tmp")
}

/// The name that a temporary file was to take the place of, and the process that was writing it; none for a file that is
/// no temporary of ours. A process that is killed in the middle of a write leaves one behind.
pub fn temp_of(name: &str) -> Option<(&str, u32)> {
    let inner = name.strip_prefix('.')?.strip_suffix(".tmp")?;
    let (inner, n) = inner.rsplit_once('.')?;
    let (target, pid) = inner.rsplit_once('.')?;
    n.parse::<u32>().ok()?;
    Some((target, pid.parse().ok()?)).filter(|(target, _)| !target.is_empty())
}

/// Puts `temp` in the place of `path`, in one step.
///
/// A rename over an existing file makes ext4 put the new one on disk at once, which takes milliseconds. Exchanging the
/// names does not, and what was there goes under the temporary name.
fn swap_in(temp: &Path, path: &Path) -> io::Result<()> {
    let exchanged = fs::symlink_metadata(path).is_ok_and(|there| !there.is_dir())
        && rustix::fs::renameat_with(CWD, temp, CWD, path, RenameFlags::EXCHANGE).is_ok();
    if exchanged {
        let _ = fs::remove_file(temp); // the new content is in place; a leftover is replaced by the next writer
        return Ok(());
    }
    fs::rename(temp, path)
}

/// Appends whole lines to a private file in one write. A last line that an interrupted writer left open is closed
/// first; a write that fails half-way (a full disk) is taken back. The caller holds the file's lock.
pub fn append(path: &Path, lines: &str) -> io::Result<()> {
    parent_dir(path)?;
    append_whole(&mut open_append(path)?, lines)
}

fn append_whole(file: &mut File, lines: &str) -> io::Result<()> {
    let before = file.metadata()?.len();
    let mut bytes = Vec::with_capacity(lines.len() + 2);
    if before > 0 {
        let mut last = [0];
        file.seek(SeekFrom::Start(before - 1))?;
        file.read_exact(&mut last)?;
        if last != [b'\n'] {
            bytes.push(b'\n');
        }
    }
    bytes.extend_from_slice(lines.as_bytes());
    if !lines.ends_with('\n') {
        bytes.push(b'\n');
    }
    within_limit(before + bytes.len() as u64)?;
    if let Err(error) = file.write_all(&bytes) {
        let _ = file.set_len(before); // best effort: a torn line also reads as absent
        return Err(error);
    }
    Ok(())
}

/// Appends one line in a single write without a lock: for the debug log, where order between processes is free.
pub fn append_line_unlocked(path: &Path, line: &str) -> io::Result<()> {
    parent_dir(path)?;
    let mut file = open_append(path)?;
    within_limit(file.metadata()?.len() + line.len() as u64)?;
    file.write_all(line.as_bytes())
}

/// Refuses a length that this process may give no file (`ulimit -f`): the system would kill it for the write.
fn within_limit(len: u64) -> io::Result<()> {
    match rustix::process::getrlimit(rustix::process::Resource::Fsize).current {
        Some(limit) if len > limit => Err(rustix::io::Errno::FBIG.into()),
        _ => Ok(()),
    }
}

fn open_append(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).custom_flags(SAFE).open(path)?;
    if !own_regular(&file)? {
        return Err(io::Error::other(format!("{} is not a file of this user", path.display())));
    }
    if file.metadata()?.mode() & 0o077 != 0 {
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

/// Removes a file; a missing one is no error. A link is removed itself, never what it points to.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes a file, or a folder with everything in it; links inside are removed, never followed.
pub fn remove_all(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir()) { fs::remove_dir_all(path) } else { remove(path) }
}

/// Renames a file (rotation, setting aside); never across folders of different owners.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

/// Renames a file that holds user data to `<name>.<why>.<ms>` (`corrupt`, `cleared`), so that nothing overwrites it.
pub fn set_aside(path: &Path, why: &str, now_ms: i64) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let at = |ms: i64| {
        let mut name = name.to_os_string();
        name.push(format!(".{why}.{ms}"));
        path.with_file_name(name)
    };
    let free = (now_ms..).map(at).find(|aside| aside.symlink_metadata().is_err());
    let aside = free.ok_or(io::ErrorKind::AlreadyExists)?;
    fs::rename(path, &aside)?;
    Ok(aside)
}

/// Sets the time of the last change of a user's file, links followed.
pub fn set_changed(path: &Path, ms: i64) -> io::Result<()> {
    let when = UNIX_EPOCH + Duration::from_millis(ms.max(0) as u64);
    open_user(path)?.ok_or(io::ErrorKind::NotFound)?.set_modified(when)
}

/// An exclusive advisory lock, released on drop. Lock files are never deleted: deleting one would let two holders in.
#[derive(Debug)]
pub struct Lock(File);

impl Lock {
    /// Sets the time of the last change of the lock file.
    pub fn touch(&self, ms: i64) -> io::Result<()> {
        self.0.set_modified(UNIX_EPOCH + Duration::from_millis(ms.max(0) as u64))
    }
}

/// Takes the lock at `path`, waiting at most `patience`; none when another process holds it all that time.
pub fn lock(path: &Path, patience: Duration) -> io::Result<Option<Lock>> {
    parent_dir(path)?;
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(SAFE)
        .open(path)?;
    if !own_regular(&file)? {
        return Err(io::Error::other(format!("{} is not a file of this user", path.display())));
    }
    Ok(acquire(&file, patience)?.then_some(Lock(file)))
}

/// Locks an open file, waiting at most `patience`; false when another process holds it all that time.
fn acquire(file: &File, patience: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + patience;
    let mut pause = Duration::from_micros(200);
    loop {
        match fs2::FileExt::try_lock_exclusive(file) {
            Ok(()) => return Ok(true),
            Err(error) if error.raw_os_error() == fs2::lock_contended_error().raw_os_error() => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        std::thread::sleep(pause.min(left));
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}

/// The longest wait for the lock on a file of pending deltas. Whoever holds it does so for microseconds.
const PENDING_PATIENCE: Duration = Duration::from_millis(500);
/// How a line begins that says which value the counter has once the deltas above it are in it.
const FOLDED_INTO: &str = "folded into ";
/// The most that is read of pending deltas, in bytes: millions of them.
const PENDING_MAX: u64 = 16 << 20;

/// Appends a delta to `path` under a lock on that very file: for a counter whose own lock could not be had.
pub fn append_pending(path: &Path, delta: u64) -> io::Result<()> {
    let mut file = open_append(path)?;
    if !acquire(&file, PENDING_PATIENCE)? {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    append_whole(&mut file, &delta.to_string())
}

/// Takes all pending deltas out of `path`: `fold` is told their sum and returns the counter's new value, and they are
/// gone only when it succeeds. `counter` is the value as it is now. None when there are none, or another process holds
/// them.
///
/// The counter and its pending deltas are two files. Before the counter is written its new value is noted under the
/// deltas, so that after a kill between the two writes the next one to fold knows which deltas are in it already.
pub fn drain_pending(
    path: &Path,
    counter: u64,
    value: impl FnOnce(u64) -> u64,
    write: impl FnOnce(u64) -> io::Result<()>,
) -> io::Result<Option<u64>> {
    let mut file = match OpenOptions::new().read(true).append(true).custom_flags(SAFE).open(path) {
        Ok(file) if own_regular(&file)? => file,
        _ => return Ok(None),
    };
    if file.metadata()?.len() == 0 || !acquire(&file, PENDING_PATIENCE)? {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    (&file).take(PENDING_MAX).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_in = |line: &&str| line.strip_prefix(FOLDED_INTO).is_some_and(|value| value.parse() == Ok(counter));
    let fresh = lines.iter().rposition(is_in).map_or(0, |at| at + 1);
    let deltas = lines[fresh..].iter().filter_map(|line| line.parse::<u64>().ok());
    let new = value(deltas.fold(0, u64::saturating_add));
    append_whole(&mut file, &format!("{FOLDED_INTO}{new}"))?;
    write(new)?;
    file.set_len(0)?;
    Ok(Some(new))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn only_a_small_own_file_that_the_content_fits_is_overwritten() {
        let dir = folder();
        let path = dir.path().join("count");
        write_atomic(&path, b"12345").unwrap();
        let ino = fs::metadata(&path).unwrap().ino();
        for (bytes, pad, fits) in
            [(&b"67890"[..], 0, true), (b"6789", 0, false), (b"678901", 9, false), (b"{}", 3, true), (b"{}", 2, false)]
        {
            assert_eq!(overwrite(&path, bytes, pad).unwrap(), fits, "{bytes:?}");
        }
        assert_eq!((fs::read(&path).unwrap(), fs::metadata(&path).unwrap().ino()), (b"{}   ".to_vec(), ino));
        fs::hard_link(&path, dir.path().join("second")).unwrap();
        assert!(!overwrite(&path, b"67890", 0).unwrap());
        std::os::unix::fs::symlink(&path, dir.path().join("link")).unwrap();
        assert!(!overwrite(&dir.path().join("link"), b"67890", 0).unwrap());
        assert!(!overwrite(&dir.path().join("none"), b"67890", 0).unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"{}   ");
    }

    #[test]
    fn a_link_is_neither_read_nor_written_through() {
        let dir = folder();
        let (victim, link) = (dir.path().join("victim"), dir.path().join("link"));
        fs::write(&victim, "theirs").unwrap();
        std::os::unix::fs::symlink(&victim, &link).unwrap();
        assert!(read_private(&link, 100).unwrap().is_none());
        assert!(append(&link, "x").is_err());
        assert!(lock(&link, Duration::ZERO).is_err());
        for outlives in [Outlives::Process, Outlives::Crash] {
            let _ = fs::remove_file(&link);
            std::os::unix::fs::symlink(&victim, &link).unwrap();
            write_atomic_parts(&link, &[b"ou", b"rs"], outlives).unwrap();
            assert_eq!(fs::read(&victim).unwrap(), b"theirs");
            assert_eq!(fs::read(&link).unwrap(), b"ours");
            assert!(!fs::symlink_metadata(&link).unwrap().is_symlink());
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_fifo_is_not_waited_for() {
        let dir = folder();
        let fifo = dir.path().join("fifo");
        rustix::fs::mknodat(CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert!(read_private(&fifo, 100).unwrap().is_none());
        assert!(append(&fifo, "x").is_err());
    }

    #[test]
    fn an_open_last_line_is_closed_before_the_next() {
        let dir = folder();
        let path = dir.path().join("log");
        fs::write(&path, "one\ntor").unwrap();
        append(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntor\ntwo\n");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_user_file_keeps_its_mode_and_stays_a_link() {
        let dir = folder();
        let (target, link) = (dir.path().join("dotfiles"), dir.path().join("settings.json"));
        fs::write(&target, "{}").unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o644)).unwrap();
        std::os::unix::fs::symlink("dotfiles", &link).unwrap();
        write_user(&link, b"{\"a\":1}").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&target).unwrap(), b"{\"a\":1}");
        assert_eq!(fs::metadata(&target).unwrap().mode() & 0o777, 0o644);
    }

    #[test]
    fn a_held_lock_is_given_up_after_the_patience() {
        let dir = folder();
        let path = dir.path().join("a.lock");
        let held = lock(&path, Duration::ZERO).unwrap().unwrap();
        assert!(lock(&path, Duration::from_millis(20)).unwrap().is_none());
        drop(held);
        assert!(lock(&path, Duration::ZERO).unwrap().is_some());
    }

    #[test]
    fn pending_lines_survive_a_failed_fold() {
        let dir = folder();
        let path = dir.path().join("n.pending");
        append_pending(&path, 3).unwrap();
        append_pending(&path, 4).unwrap();
        assert!(drain_pending(&path, 10, |sum| 10 + sum, |_| Err(io::Error::other("no"))).is_err());
        append_pending(&path, 5).unwrap();
        assert_eq!(drain_pending(&path, 10, |sum| 10 + sum, |_| Ok(())).unwrap(), Some(22));
        assert_eq!(drain_pending(&path, 22, |sum| 22 + sum, |_| Ok(())).unwrap(), None);
    }

    #[test]
    fn deltas_that_a_killed_process_had_folded_in_are_not_counted_again() {
        let dir = folder();
        let path = dir.path().join("n.pending");
        let drain = |counter| drain_pending(&path, counter, |sum| counter + sum + 1, |_| Ok(())).unwrap();
        for (text, counter, want) in [
            ("3\n4\nfolded into 18\n", 18, 19),
            ("3\n4\nfolded into 18\n", 10, 18),
            ("3\n4\nfolded into 18\n5\nfolded into 24\n", 18, 24),
            ("3\n4\nfolded into 18\n5\nfolded into 24\n", 24, 25),
            ("3\n\u{0}junk\n-1\n4", 10, 18),
        ] {
            fs::write(&path, text).unwrap();
            assert_eq!(drain(counter), Some(want), "{text:?} {counter}");
            assert_eq!(fs::read(&path).unwrap(), b"");
        }
    }

    #[test]
    fn pending_deltas_that_another_process_holds_are_not_waited_for_long() {
        let dir = folder();
        let path = dir.path().join("n.pending");
        append_pending(&path, 3).unwrap();
        let held = File::open(&path).unwrap();
        fs2::FileExt::lock_exclusive(&held).unwrap();
        assert!(append_pending(&path, 4).is_err());
        assert_eq!(drain_pending(&path, 10, |sum| 10 + sum, |_| Ok(())).unwrap(), None);
    }

    #[test]
    fn temporary_names_tell_what_they_stood_for() {
        let name = temp_name("claude-cost-a.b", 77, 3);
        assert_eq!(temp_of(&name), Some(("claude-cost-a.b", 77)));
        for other in ["claude-cost-a", ".x.tmp", ".x.1.tmp", "..1.2.tmp", ".x.a.1.tmp", ".x.1.2.tmp2", "x.1.2.tmp"] {
            assert_eq!(temp_of(other), None, "{other}");
        }
    }
}
