//! The folder of a control socket: nobody else can put another socket in its place.
//!
//! Contract: every folder and link that the socket's name leads through, from the root on, is root's or a user's, and
//! no folder is writable by anybody else. Only a parent folder may be writable by others, if it is root's and sticky as
//! `/tmp` is: there they replace nothing that is not theirs.
//!
//! Source: OpenSSH `misc.c`, `safe_path`.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{self, Component, Path, PathBuf};

use rustix::io::Errno;

use crate::config::folder;

const OTHERS_WRITE: u32 = 0o022;
const STICKY: u32 = 0o1000;
/// Links that a name may lead through, as many as Linux follows.
const MOST_LINKS: usize = 40;

/// Whether nobody but root and this user can replace a socket at this path.
///
/// # Errors
/// Somebody else can: which folder or link it is, and what to do about it.
pub(super) fn check(socket: &Path, user: u32) -> io::Result<()> {
    let mut ahead = reversed(&path::absolute(folder(socket))?);
    let (mut at, mut links) = (PathBuf::from("/"), 0);
    loop {
        is_safe(&at, &fs::symlink_metadata(&at)?, user, ahead.is_empty())?;
        let Some(name) = ahead.pop() else { return Ok(()) };
        if name == ".." {
            at.pop();
            continue;
        }
        let next = at.join(name);
        let found = fs::symlink_metadata(&next)?;
        if !found.is_symlink() {
            at = next;
            continue;
        }
        owned(&next, &found, user)?;
        links += 1;
        if links > MOST_LINKS {
            return Err(Errno::LOOP.into());
        }
        let to = fs::read_link(&next)?;
        if to.is_absolute() {
            at = PathBuf::from("/");
        }
        ahead.append(&mut reversed(&to));
    }
}

/// The names of a path, the last one first.
fn reversed(path: &Path) -> Vec<OsString> {
    let names = path.components().rev().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    names.collect()
}

fn owned(place: &Path, found: &Metadata, user: u32) -> io::Result<()> {
    if [0, user].contains(&found.uid()) {
        return Ok(());
    }
    let (shown, owner) = (place.display(), found.uid());
    let what = format!("expected folders of root or user {user}, found {shown} of user {owner}");
    Err(io::Error::new(ErrorKind::PermissionDenied, what))
}

fn is_safe(place: &Path, found: &Metadata, user: u32, is_last: bool) -> io::Result<()> {
    owned(place, found, user)?;
    let (is_sticky, shown) = (found.uid() == 0 && found.mode() & STICKY != 0, place.display());
    let what = match found.mode() & OTHERS_WRITE {
        0 => return Ok(()),
        _ if is_sticky && !is_last => return Ok(()),
        _ if is_sticky => format!("others may write to {shown}: name a folder of your own in it"),
        _ => format!("others may write to {shown}: chmod go-w {shown}, or name another folder"),
    };
    Err(io::Error::new(ErrorKind::PermissionDenied, what))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use tempfile::TempDir;

    use super::*;

    #[test]
    fn every_folder_and_link_on_the_way_is_looked_at() {
        let dir = TempDir::new().unwrap();
        let (at, user) = (|name: &str| dir.path().join(name), rustix::process::geteuid().as_raw());
        for folder in ["own", "open"] {
            fs::create_dir(at(folder)).unwrap();
        }
        fs::set_permissions(at("open"), fs::Permissions::from_mode(0o777)).unwrap();
        symlink(at("own"), at("open/link")).unwrap();
        symlink("own", at("near")).unwrap();
        symlink("loop", at("loop")).unwrap();
        for fine in ["own/c", "near/c", "own/../near/c"] {
            check(&at(fine), user).unwrap();
        }
        // The link may be another one tomorrow, though its target is nobody else's.
        for open in ["open/c", "open/link/c"] {
            let refused = check(&at(open), user).unwrap_err().to_string();
            assert!(refused.contains("open: chmod go-w"), "{open}: {refused}");
        }
        assert!(check(&at("loop/c"), user).is_err());
        let refused = check(Path::new("/tmp/c"), user).unwrap_err().to_string();
        assert!(refused.contains("name a folder of your own in it"), "{refused}");
    }
}
