//! `tamis run` with a handler in Java, for which it starts a JVM. Needs a JDK, and the library of JSON that Maven has.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use crate::ran::{CAPTURE, Ran, Scratch, TAMIS, skipped, tamis};
use crate::started::started;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/java");
const BINDINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bindings/java");
const NANOJSON: &str = "com/grack/nanojson/1.10/nanojson-1.10.jar";

/// A jar of the handlers, and what they need: the classes of `dev.tamis`, and the library that these need.
struct Built {
    handlers: PathBuf,
    library: PathBuf,
    nanojson: PathBuf,
}

/// What was built for all tests of this process; `None`, and why on standard error, where it cannot be.
fn built() -> Option<&'static Built> {
    static BUILT: OnceLock<Result<Built, String>> = OnceLock::new();
    let built = BUILT.get_or_init(build).as_ref();
    built.inspect_err(|why| skipped(&format!("handlers in Java: {why}"))).ok()
}

fn build() -> Result<Built, String> {
    let nanojson = nanojson()?;
    // One place for all processes: what is left there is replaced by the next.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("java-upcalls");
    let _ = fs::remove_dir_all(&folder);
    let (library, classes) = (folder.join("library"), folder.join("classes"));
    javac(&format!("{BINDINGS}/src/main/java/dev/tamis"), &library, &nanojson.to_string_lossy())?;
    javac(SOURCES, &classes, &library.to_string_lossy())?;
    let handlers = folder.join("handlers.jar");
    let mut jar = Command::new("jar");
    jar.arg("--create").arg("--file").arg(&handlers).arg("-C").arg(&classes).arg(".");
    done(&mut jar)?;
    Ok(Built { handlers, library, nanojson })
}

fn nanojson() -> Result<PathBuf, String> {
    let home = std::env::var("HOME").map_err(|_| "no HOME")?;
    let jar = Path::new(&home).join(".m2/repository").join(NANOJSON);
    if !jar.exists() {
        let pom = format!("{BINDINGS}/pom.xml");
        done(Command::new("mvn").args([
            "--quiet",
            "--batch-mode",
            "--file",
            &pom,
            "dependency:resolve",
        ]))?;
    }
    jar.exists().then_some(jar).ok_or("Maven has no nanojson".to_owned())
}

fn javac(sources: &str, classes: &Path, path: &str) -> Result<(), String> {
    let of_java = |file: &PathBuf| file.extension().is_some_and(|extension| extension == "java");
    let sources = fs::read_dir(sources).map_err(|error| error.to_string())?;
    let sources = sources.filter_map(|entry| Some(entry.ok()?.path())).filter(of_java);
    let mut javac = Command::new("javac");
    javac.args(["-nowarn", "-XDignore.symbol.file", "-cp", path, "-d"]).arg(classes).args(sources);
    done(&mut javac)
}

/// What a program says that fails, or that there is none.
fn done(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr))),
        Err(error) => Err(format!("{name}: {error}")),
    }
}

/// Lines of a configuration from the demonstration's capture to `out.pcap`, under rules that accept all.
fn lines(folder: &Scratch) -> String {
    folder.write("rules.v4", "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n");
    format!(
        "[[port]]\nname = \"left\"\nkind = \"pcap\"\nfile = \"{CAPTURE}\"\n\
         [[port]]\nname = \"right\"\nkind = \"pcap\"\nout = \"out.pcap\"\n\
         [[wire]]\nports = [\"left\", \"right\"]\n[rules]\nip = \"rules.v4\"\n"
    )
}

impl Built {
    /// `[middlebox]` with a handler of this class.
    fn middlebox(&self, class: &str) -> String {
        let Self { handlers, library, nanojson } = self;
        let files = [handlers, library, nanojson].map(|file| file.to_string_lossy());
        format!("[middlebox]\nkind = \"java\"\njar = {files:?}\nclass = \"{class}\"\n")
    }

    /// Runs a capture through a handler of this class; `more` are other keys of `[middlebox]`, or sections.
    fn run(&self, folder: &Scratch, class: &str, more: &str) -> Ran {
        let text = format!("{}{}{more}", lines(folder), self.middlebox(class));
        let config = folder.write("live.toml", text);
        folder.tamis(&["run", &config, "--json"])
    }
}

/// What left.
fn out(folder: &Scratch) -> Vec<u8> {
    fs::read(folder.file("out.pcap")).unwrap()
}

/// A reason by which frames were dropped, to the right.
fn dropped(status: &Value, reason: &str) -> u64 {
    status["wires"][0]["dropped"][reason].as_u64().unwrap_or(0)
}

/// What the same handler makes of the same capture where Java polls.
fn polled(built: &Built, folder: &Scratch) -> Vec<u8> {
    let config = folder.write("polled.toml", lines(folder));
    let Built { handlers, library, nanojson } = built;
    let path = std::env::join_paths([handlers, library, nanojson]).unwrap();
    let native = Path::new(TAMIS).with_file_name("deps").join("libtamis_java.so");
    let native = format!("-Dtamis.library={}", native.display());
    let mut java = Command::new("java");
    done(java.arg(native).arg("-cp").arg(path).args(["Polled", &config])).unwrap();
    let left = out(folder);
    fs::remove_file(folder.file("out.pcap")).unwrap();
    left
}

#[test]
fn what_leaves_is_what_leaves_where_java_polls() {
    let Some(built) = built() else { return };
    let folder = Scratch::new("java-upcalls-same");
    let polled = polled(built, &folder);
    for more in ["", "ring = 256\n", "place = \"before\"\n", "options = [\"-Xint\", \"-Xmx64m\"]\n"]
    {
        let ran = built.run(&folder, "Shapes", more);
        let status = ran.json();
        assert!(dropped(&status, "middlebox") > 0, "{more}: {status}");
        assert_eq!(dropped(&status, "handler_error"), 0, "{more}: {status}");
        let received = status["wires"][0]["received"].to_string();
        assert!(ran.err.contains(&format!("worker 0 of 1 saw {received}\n")), "{}", ran.err);
        assert!(polled == out(&folder), "{more}");
    }
}

#[test]
fn each_of_two_workers_has_a_handler_of_its_own() {
    let Some(built) = built() else { return };
    let folder = Scratch::new("java-upcalls-two");
    let polled = polled(built, &folder);
    for ring in ["", "ring = 256\n"] {
        let ran = built.run(&folder, "Shapes", &format!("{ring}[workers]\ncount = 2\n"));
        let status = ran.json();
        let saw = |worker: u64| {
            let line = ran.err.split(&format!("worker {worker} of 2 saw ")).nth(1).expect(&ran.err);
            line.lines().next().unwrap().parse::<u64>().unwrap()
        };
        assert!(saw(0) > 0 && saw(1) > 0, "{}", ran.err);
        assert_eq!(Some(saw(0) + saw(1)), status["wires"][0]["received"].as_u64());
        assert_eq!(out(&folder).len(), polled.len());
    }
}

#[test]
fn what_a_handler_throws_is_counted_and_told_and_what_it_passes_goes_on() {
    let Some(built) = built() else { return };
    let folder = Scratch::new("java-upcalls-fails");
    for ring in ["", "ring = 256\n"] {
        let ran = built.run(&folder, "Fails", ring);
        let status = ran.json();
        let failed = dropped(&status, "handler_error");
        assert!(failed > 0, "{status}");
        let wire = &status["wires"][0];
        assert_eq!(wire["received"].as_u64().unwrap() - failed, wire["sent"].as_u64().unwrap());
        assert!(ran.err.contains("java.lang.IllegalStateException: over TCP"), "{}", ran.err);
        assert!(ran.err.contains("at Fails.packet(Fails.java"), "{}", ran.err);
        let passed = built.run(&folder, "Fails", &format!("{ring}on_error = \"pass\"\n")).json();
        assert_eq!(passed["wires"][0]["sent"], passed["wires"][0]["received"]);
    }
}

/// Both are signals to the JVM, in a thread whose stack is not of its making.
#[test]
fn a_stack_that_is_used_up_and_a_null_are_exceptions_as_any() {
    let Some(built) = built() else { return };
    let folder = Scratch::new("java-upcalls-overflows");
    let ran = built.run(&folder, "Overflows", "");
    let status = ran.json();
    let failed = dropped(&status, "handler_error");
    let wire = &status["wires"][0];
    assert!(failed > 0 && wire["sent"].as_u64() > Some(0), "{status}");
    assert_eq!(wire["received"].as_u64().unwrap() - failed, wire["sent"].as_u64().unwrap());
    assert!(ran.err.contains("StackOverflowError"), "{}", ran.err);
}

#[test]
fn a_class_that_is_no_handler_is_refused_at_its_place() {
    let Some(built) = built() else { return };
    let folder = Scratch::new("java-upcalls-none");
    let refused = |class: &str| {
        let ran = built.run(&folder, class, "");
        assert_eq!((ran.code, &*ran.out), (Some(2), ""), "{}", ran.err);
        let place = format!("tamis: {}:16:9: ", folder.file("live.toml"));
        ran.err.lines().last().unwrap().strip_prefix(&place).expect(&ran.err).to_owned()
    };
    let expected = "expected a class that implements dev.tamis.Handler, found ";
    assert_eq!(refused("NoHandler"), format!("{expected}NoHandler"));
    assert_eq!(refused("dev.tamis.Handler"), format!("{expected}dev.tamis.Handler"));
    assert_eq!(refused("Nowhere"), "no class Nowhere is in the class path of jar");
    let thrown =
        "the constructor of FailsAtOnce has thrown java.lang.IllegalStateException: no such list";
    assert_eq!(refused("FailsAtOnce"), thrown);
}

#[test]
fn a_handler_that_cannot_begin_ends_the_run() {
    let Some(built) = built() else { return };
    let folder = Scratch::new("java-upcalls-init");
    for ring in ["", "ring = 256\n"] {
        let ran = built.run(&folder, "FailsToBegin", ring);
        assert_eq!(ran.code, Some(1), "{}", ran.err);
        assert!(ran.err.contains("IllegalStateException: no such table"), "{}", ran.err);
        assert!(ran.err.contains("worker 0 was given up"), "{}", ran.err);
        let status: Value = serde_json::from_str(&ran.out).unwrap();
        let wire = &status["wires"][0];
        let dropped: u64 =
            wire["dropped"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
        assert_eq!(wire["received"].as_u64(), Some(dropped + wire["sent"].as_u64().unwrap()));
    }
}

#[test]
fn a_handler_asks_and_changes_the_run_that_it_is_in() {
    let Some(built) = built() else { return };
    let folder = Scratch::new("java-upcalls-asks");
    let rules = folder.file("rules.v4");
    let options = format!("options = [\"-Drules={rules}\", \"-Dcapture={CAPTURE}\"]\n");
    // The burst that its first packet is in is evaluated after that.
    let ran = built.run(&folder, "Asks", &format!("{options}place = \"before\"\n"));
    let bans = folder.write("bans.txt", "- ban 10.20.0.0/16\n");
    let banned = tamis(&["replay", &rules, CAPTURE, "--bans", &bans, "--json"]).json();
    let banned = banned["drop_reasons"]["denied"].as_u64().unwrap();
    assert!(banned > 0);
    let status = ran.json();
    assert_eq!(dropped(&status, "denied"), banned, "{status} {}", ran.err);
    let asked: Vec<&str> =
        ran.err.lines().filter_map(|line| line.strip_prefix("asked: ")).collect();
    let received = status["wires"][0]["received"].to_string();
    let [workers, bans, replayed, why, failed] = asked[..] else { panic!("{}", ran.err) };
    assert_eq!((workers, why, failed), ("workers 1", "why accept", "failed 0"));
    assert!(bans.contains("tamis.bans_list/1") && bans.contains("10.20.0.0/16"), "{bans}");
    assert_eq!(replayed, format!("replayed {received}"));
}

#[test]
fn a_signal_ends_run_handler_and_jvm() {
    let Some(built) = built() else { return };
    for signal in ["-INT", "-TERM"] {
        let folder = Scratch::new("java-upcalls-signal");
        let lines =
            lines(&folder).replace("kind = \"pcap\"\nout = \"out.pcap\"", "kind = \"loopback\"");
        let config = folder.write("live.toml", format!("{lines}{}", built.middlebox("Waits")));
        let run = started(&config);
        let pid = run.pid().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        let ran = run.ended();
        assert_eq!(ran.code, Some(0), "{signal}: {}", ran.err);
        let last: Vec<&str> = ran.err.lines().rev().take(2).collect();
        assert_eq!(last, ["hook ran", "closed"], "{signal}: {}", ran.err);
    }
}

#[test]
fn what_is_not_there_is_refused_before_anything_is_opened() {
    let folder = Scratch::new("java-upcalls-missing");
    let run = |keys: &str, java_home: &str, path: &str| {
        let text = format!("{}[middlebox]\nkind = \"java\"\nclass = \"A\"\n{keys}", lines(&folder));
        let config = folder.write("live.toml", text);
        let mut command = Command::new(TAMIS);
        command.args(["run", &config]).env("JAVA_HOME", java_home).env("PATH", path);
        let ran: Ran = command.output().unwrap().into();
        let checked: Ran = command.arg("--check").output().unwrap().into();
        assert!(checked.err.ends_with(&ran.err), "{} {}", checked.err, ran.err);
        assert!(!Path::new(&folder.file("out.pcap")).exists());
        ran.refusal().replace(&format!("{}/", folder.path().display()), "")
    };
    let missing = run("jar = \"a.jar\"\n", "/nowhere", "/nowhere");
    assert_eq!(missing, "live.toml:16:7: a.jar: No such file or directory");
    folder.write("a.jar", "");
    let file = "lib/server/libjvm.so";
    let expected = format!("expected the folder of a JDK or JRE 17 or later: no {file} is in ");
    let jar = "jar = \"a.jar\"\n";
    let of_home = format!("live.toml:14:8: {expected}/nowhere, which JAVA_HOME names");
    assert_eq!(run(jar, "/nowhere", "/nowhere"), of_home);
    let named = run(&format!("{jar}jvm = \"jdk\"\n"), "", "");
    assert_eq!(named, format!("live.toml:17:7: {expected}jdk"));
    assert_eq!(
        run(jar, "", "/nowhere"),
        "live.toml:14:8: expected a JVM: JAVA_HOME is not set, and there is no java on the PATH; \
         jvm = \"…\" names the folder of a JDK or JRE"
    );
}

#[test]
fn a_class_path_without_tamis_and_a_jvm_that_does_not_start_are_refused() {
    let Some(built) = built() else { return };
    let folder = Scratch::new("java-upcalls-alone");
    let alone = format!("{:?}", [built.handlers.to_string_lossy()]);
    let text = built.middlebox("Shapes").replace(
        &format!(
            "{:?}",
            [&built.handlers, &built.library, &built.nanojson].map(|f| f.to_string_lossy())
        ),
        &alone,
    );
    let config = folder.write("live.toml", format!("{}{text}", lines(&folder)));
    let ran = folder.tamis(&["run", &config]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    let expected =
        "live.toml:15:8: expected tamis for Java, of this version, among the files of jar: ";
    assert!(ran.err.contains(expected), "{}", ran.err);

    let ran = built.run(&folder, "Shapes", "options = [\"-Xnosuchthing\"]\n");
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    let expected =
        "live.toml:17:11: the JVM does not start with these options, and says why above: ";
    assert!(ran.err.contains(expected), "{}", ran.err);
    assert!(ran.err.contains("Unrecognized option: -Xnosuchthing"), "{}", ran.err);
}
