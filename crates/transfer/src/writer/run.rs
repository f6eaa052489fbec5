//! A part of a file that arrives: its data, or zeros that need no room on the disk.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// A part of a file.
#[derive(Clone, Copy, Debug)]
pub(super) enum Run<'a> {
    Data(&'a [u8]),
    /// Zeros, this number of them.
    Zeros(u64),
}

impl Run<'_> {
    pub(super) fn length(self) -> u64 {
        match self {
            Self::Data(data) => data.len() as u64,
            Self::Zeros(length) => length,
        }
    }

    /// Puts it into a file. Zeros behind the end of the file become a hole, where the file system knows such.
    pub(super) fn put(self, file: &File, offset: u64) -> io::Result<()> {
        let length = match self {
            Self::Data(data) => return file.write_all_at(data, offset),
            Self::Zeros(length) => length,
        };
        let end = offset + length;
        let there = file.metadata()?.len();
        if there < end {
            file.set_len(end)?;
        }
        // An interrupted transfer may have written here without noting it.
        erase(file, offset, there.min(end))
    }
}

/// Makes zeros of what is in a part of a file.
fn erase(file: &File, start: u64, end: u64) -> io::Result<()> {
    if start >= end {
        return Ok(());
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::FallocateFlags;
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        if rustix::fs::fallocate(file, flags, start, end - start).is_ok() {
            return Ok(());
        }
    }
    let zeros = vec![0; 64 << 10];
    let mut at = start;
    while at < end {
        let length = (end - at).min(zeros.len() as u64);
        file.write_all_at(&zeros[..length as usize], at)?;
        at += length;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_replace_what_was_there_and_extend_the_file() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&[1; 10_000], 0).unwrap();
        Run::Zeros(9_000).put(&file, 5_000).unwrap();
        Run::Data(b"end").put(&file, 14_000).unwrap();
        Run::Zeros(1_000_000).put(&file, 14_003).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 1_014_003);
        let mut found = vec![0; 1_014_003];
        file.read_exact_at(&mut found, 0).unwrap();
        let mut expected = [vec![1; 5_000], vec![0; 9_000], b"end".to_vec()].concat();
        expected.resize(1_014_003, 0);
        assert!(found == expected);
    }
}
