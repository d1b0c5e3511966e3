//! `tamis collect`: writes what a host's own programs print of it into a folder, or prints the shell script that does so
//! where tamis is not installed. Both run the same commands, each by a shell, so that both write the same.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use packet::visible;
use replay::shell::command;

use crate::screen;

/// `tamis collect`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
What cannot be collected, such as the output of a program that is not installed, is told and left out. Run it as root:
rules and connections are read by root alone.
Exit codes: 0 done, 2 usage error, or nothing could be collected.
Examples:
  tamis collect fw && sudo tcpdump -i any -B 65536 -w fw.pcap && tamis replay fw fw.pcap
  tamis collect --script fw | ssh root@router sh -s | tar x")]
pub(crate) struct CollectArgs {
    /// The folder to write; with --script the folder that the archive will hold [default there: host]
    #[arg(value_name = "DIR", required_unless_present = "script")]
    pub dir: Option<String>,
    /// Print a POSIX shell script that collects on a machine without tamis, and writes a tar archive to standard output
    #[arg(long)]
    pub script: bool,
}

/// A file and the commands that print it, best first: the next one is tried where one fails.
struct Source {
    file: &'static str,
    commands: &'static [&'static str],
}

/// Each file that is collected. A command begins with the program that it needs; blank rulesets try the next command.
const SOURCES: &[Source] = &[
    Source {
        file: "iptables.save",
        commands: &["iptables-save -c", "iptables-legacy-save -c", "iptables-nft-save -c"],
    },
    Source {
        file: "ip6tables.save",
        commands: &["ip6tables-save -c", "ip6tables-legacy-save -c", "ip6tables-nft-save -c"],
    },
    Source { file: "arptables.save", commands: &["arptables-save -c", "arptables-save"] },
    Source { file: "ebtables.save", commands: &["ebtables-save -c", "ebtables-save"] },
    Source { file: "ipset.save", commands: &["ipset save"] },
    Source {
        file: "routes.txt",
        commands: &["ip -4 route show table all; ip -6 route show table all"],
    },
    Source { file: "rule.txt", commands: &["ip -4 rule; ip -6 rule"] },
    Source { file: "links.txt", commands: &["ip -d -o link", "ip -o link"] },
    Source { file: "addresses.txt", commands: &["ip -o addr"] },
    Source { file: "neigh.txt", commands: &["ip neigh"] },
    Source { file: "maddr.txt", commands: &["ip maddr"] },
    Source { file: "bridge.txt", commands: &["bridge -o link"] },
    Source { file: "sysctl.txt", commands: &["sysctl net.ipv4 net.ipv6 net.bridge net.netfilter"] },
    Source { file: "uname.txt", commands: &["uname -srv"] },
    Source { file: "conntrack.txt", commands: &["conntrack -L", "cat /proc/net/nf_conntrack"] },
    Source { file: "nft.json", commands: &["nft -j list ruleset"] },
];

/// The file that names those that were collected, so that only these are ever overwritten.
const WRITTEN: &str = "collected.txt";

/// Where administrators' programs lie, and the language of what they print.
const ENVIRONMENT: &str = "PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin LC_ALL=C; export PATH LC_ALL";

/// What a folder has, too, that a run of tamis's own describes (`tamis ctl snapshot`).
pub(crate) const OF_RUNS: [&str; 2] = ["wires.txt", "bans.txt"];

/// The files of a host's folder.
pub(crate) fn files() -> impl Iterator<Item = &'static str> {
    SOURCES.iter().map(|source| source.file).chain(OF_RUNS)
}

/// Collects, or prints the script.
pub(crate) fn run(args: &CollectArgs) -> Result<ExitCode> {
    if args.script {
        screen::print(&script(args.dir.as_deref().unwrap_or("host")))?;
        return Ok(ExitCode::SUCCESS);
    }
    let name = args.dir.as_deref().context("expected a folder to write")?;
    let folder = Folder::open(name)?;
    let mut written = Vec::new();
    for source in SOURCES {
        match source.collect()? {
            Ok(text) => {
                folder.write(source.file, &text)?;
                written.push(source.file);
            }
            Err(why) => screen::tell(&format!("tamis collect: {}: {why}", source.file)),
        }
    }
    if written.is_empty() {
        bail!("{name}: nothing could be collected");
    }
    folder.ends(written.iter().copied())?;
    let then = command("replay", &[name, "capture.pcap"], "");
    screen::print(&format!(
        "{}: {} files\nnext: tcpdump -i any -B 65536 -w capture.pcap, then {then}\n",
        visible::word(name),
        written.len()
    ))?;
    Ok(ExitCode::SUCCESS)
}

impl Source {
    fn is_ruleset(&self) -> bool {
        self.file.ends_with("tables.save")
    }

    /// What the first command that answers prints, or why none does.
    fn collect(&self) -> Result<Result<Vec<u8>, String>> {
        let mut blank = None;
        let mut why = None;
        for command in self.commands {
            let script = format!(
                "{ENVIRONMENT}; command -v {} >/dev/null || exit 127; {command}",
                program(command)
            );
            let output = Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).output();
            let output = output.context("sh")?;
            if output.status.success() || !output.stdout.is_empty() {
                let has_table =
                    output.stdout.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"*"));
                if has_table || !self.is_ruleset() {
                    return Ok(Ok(output.stdout));
                }
                blank.get_or_insert(output.stdout);
                continue;
            }
            let said = String::from_utf8_lossy(&output.stderr);
            why.get_or_insert(match (output.status.code(), said.lines().next()) {
                (Some(127), _) => format!("{} is not installed", program(command)),
                (_, said) => format!("{command}: {}", said.unwrap_or("failed")),
            });
        }
        Ok(blank.ok_or_else(|| why.unwrap_or_default()))
    }
}

/// The program that a command needs.
fn program(command: &str) -> &str {
    command.split(' ').next().unwrap_or(command)
}

/// The folder that is written.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Makes it, or empties it of what was collected before; what somebody else put there stays, and is refused.
    pub(crate) fn open(name: &str) -> Result<Self> {
        let folder = Self(PathBuf::from(name));
        match fs::create_dir(&folder.0) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(error).context(name.to_owned());
            }
            Err(_) if !folder.0.is_dir() => bail!("{name}: expected a folder, found a file"),
            _ => {}
        }
        let ours = match fs::read_to_string(folder.path(WRITTEN)) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).context(folder.path(WRITTEN).display().to_string()),
        };
        let ours: Vec<&str> = ours.lines().collect();
        let there: Vec<_> = files().filter(|file| folder.path(file).exists()).collect();
        for file in &there {
            if !ours.contains(file) {
                let path = folder.path(file);
                bail!("{}: exists, and tamis collect did not write it", path.display());
            }
        }
        for file in there {
            let path = folder.path(file);
            fs::remove_file(&path).with_context(|| path.display().to_string())?;
        }
        Ok(folder)
    }

    fn path(&self, file: &str) -> PathBuf {
        Path::new(&self.0).join(file)
    }

    /// Writes one of its files.
    pub(crate) fn write(&self, file: &str, text: &[u8]) -> Result<()> {
        let path = self.path(file);
        fs::write(&path, text).with_context(|| path.display().to_string())
    }

    /// Says which files were written, so that they may be overwritten.
    pub(crate) fn ends<'f>(&self, written: impl Iterator<Item = &'f str>) -> Result<()> {
        let names: String = written.map(|name| format!("{name}\n")).collect();
        self.write(WRITTEN, names.as_bytes())
    }
}

/// The script: it reads nothing but itself, whole before it begins, and leaves nothing behind.
fn script(folder: &str) -> String {
    let mut gets = String::new();
    for source in SOURCES {
        let commands: Vec<String> =
            source.commands.iter().map(|command| format!("'{command}'")).collect();
        gets.push_str(&format!("  get {} {}\n", source.file, commands.join(" ")));
    }
    let folder = format!("'{}'", folder.trim_start_matches('/').replace('\'', r"'\''"));
    SCRIPT
        .replace("@ENVIRONMENT@", ENVIRONMENT)
        .replace("@FOLDER@", &folder)
        .replace("@WRITTEN@", WRITTEN)
        .replace("@GETS@", gets.trim_end())
}

const SCRIPT: &str = r##"#!/bin/sh
# Made by tamis collect --script: what this host's own programs print of it, as a tar archive on standard output.
#   ssh root@router sh -s < collect.sh | tar x
# It changes nothing on this host but for a folder under /tmp, which it removes.

say() {
  echo "tamis collect: $*" >&2
}

# get FILE COMMAND...: what the first command that answers prints.
get() {
  file=$1
  shift
  why= blank=
  for command; do
    program=${command%% *}
    if ! command -v "$program" >/dev/null; then
      why=${why:-"$program is not installed"}
      continue
    fi
    if (eval "$command") >"$work/out" 2>"$work/said" </dev/null || [ -s "$work/out" ]; then
      case $file in
        *tables.save)
          if ! grep -q '^\*' "$work/out"; then
            [ -n "$blank" ] || mv "$work/out" "$work/blank"
            blank=yes
            continue
          fi ;;
      esac
      blank=
      why=
      mv "$work/out" "$folder/$file"
      echo "$file" >>"$folder/@WRITTEN@"
      return
    fi
    read -r said <"$work/said" || said=failed
    why=${why:-"$command: $said"}
  done
  if [ -n "$blank" ]; then
    mv "$work/blank" "$folder/$file"
    echo "$file" >>"$folder/@WRITTEN@"
  else
    say "$file: $why"
  fi
}

collect() {
  umask 077
  @ENVIRONMENT@
  name=@FOLDER@
  work=$(mktemp -d /tmp/tamis-collect.XXXXXX 2>/dev/null) || work=
  if [ -z "$work" ]; then
    work=/tmp/tamis-collect.$$
    mkdir "$work" || exit 1
  fi
  trap 'rm -rf "$work"' EXIT
  trap 'exit 1' HUP INT TERM
  folder=$work/archive/$name
  mkdir -p "$folder" || exit 1
@GETS@
  (cd "$work/archive" && tar -cf - "$name")
}

collect
"##;
