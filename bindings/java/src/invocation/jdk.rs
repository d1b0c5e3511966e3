//! Where the JVM's library is.
//!
//! Contract: nothing is loaded. What is named is taken or refused; what the environment names, too: another JVM than the one
//! that somebody meant is worse than none.

use std::env::{self, consts};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The library of the JVM that is named (the folder of a JDK or JRE, or the file), else that of `JAVA_HOME`, else that of
/// the `java` that is found first on the `PATH`.
///
/// # Errors
/// There is none there: what was expected and looked at.
pub(super) fn library(named: Option<&Path>) -> Result<PathBuf, String> {
    let home = env::var_os("JAVA_HOME").filter(|home| !home.is_empty());
    found(named, home.as_deref(), env::var_os("PATH").as_deref())
}

fn found(
    named: Option<&Path>,
    home: Option<&OsStr>,
    path: Option<&OsStr>,
) -> Result<PathBuf, String> {
    if let Some(named) = named {
        return match named.is_file() {
            true => Ok(named.to_owned()),
            false => of_home(named, ""),
        };
    }
    if let Some(home) = home {
        return of_home(Path::new(home), ", which JAVA_HOME names");
    }
    let folders = path.map(|path| env::split_paths(path).collect::<Vec<_>>()).unwrap_or_default();
    let java = folders.iter().map(|folder| folder.join("java")).find(|java| java.is_file());
    let Some(java) = java else {
        let what = "expected a JVM: JAVA_HOME is not set, and there is no java on the PATH; \
                    jvm = \"…\" names the folder of a JDK or JRE";
        return Err(what.to_owned());
    };
    // Links lead from a folder of programs to the JDK.
    let linked = java.canonicalize().unwrap_or_else(|_| java.clone());
    let home = linked.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
    of_home(home, &format!(", which {} is of", java.display()))
}

fn of_home(home: &Path, why: &str) -> Result<PathBuf, String> {
    let file = format!("lib/server/{}jvm{}", consts::DLL_PREFIX, consts::DLL_SUFFIX);
    let library = home.join(&file);
    match library.is_file() {
        true => Ok(library),
        false => Err(format!(
            "expected the folder of a JDK or JRE 17 or later: no {file} is in {}{why}",
            home.display()
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_is_named_comes_before_the_environment_and_is_not_replaced_by_it() {
        let folder = tempfile::tempdir().unwrap();
        let home = |name: &str| {
            let home = folder.path().join(name);
            fs::create_dir_all(home.join("lib/server")).unwrap();
            fs::create_dir_all(home.join("bin")).unwrap();
            let library = format!("lib/server/{}jvm{}", consts::DLL_PREFIX, consts::DLL_SUFFIX);
            fs::write(home.join(&library), "").unwrap();
            fs::write(home.join("bin/java"), "").unwrap();
            (home.clone(), home.join(library))
        };
        let ((first, of_first), (second, of_second), (third, of_third)) =
            (home("first"), home("second"), home("third"));
        let programs = folder.path().join("programs");
        fs::create_dir(&programs).unwrap();
        symlink(third.join("bin/java"), programs.join("java")).unwrap();
        let path = env::join_paths([folder.path(), &programs]).unwrap();
        let (env, path) = (Some(second.as_os_str()), Some(&*path));
        assert_eq!(found(Some(&first), env, path), Ok(of_first.clone()));
        assert_eq!(found(Some(&of_first), env, path), Ok(of_first));
        assert_eq!(found(None, env, path), Ok(of_second));
        let of_third = of_third.canonicalize().unwrap();
        assert_eq!(found(None, None, path), Ok(of_third));
        let missing = |why: &str, home: &Path| {
            let home = home.display();
            let file = format!("lib/server/{}jvm{}", consts::DLL_PREFIX, consts::DLL_SUFFIX);
            format!("expected the folder of a JDK or JRE 17 or later: no {file} is in {home}{why}")
        };
        assert_eq!(found(Some(&programs), env, path), Err(missing("", &programs)));
        let of_home = missing(", which JAVA_HOME names", &programs);
        assert_eq!(found(None, Some(programs.as_os_str()), path), Err(of_home));
        assert!(found(None, None, None).unwrap_err().contains("there is no java on the PATH"));
    }
}
