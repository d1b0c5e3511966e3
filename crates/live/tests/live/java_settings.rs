//! `[middlebox]` in Java: what its keys mean, and what is refused at its place. No JVM starts.

use live::config::{At, JavaSettings, Settings};

const PORTS: &str = "[[port]]\nname = \"left\"\nkind = \"loopback\"\n[[port]]\nname = \"right\"\nkind = \"loopback\"\n\
                     [[wire]]\nports = [\"left\", \"right\"]\n[rules]\nip = \"a\"\n";

/// Reads settings with the keys of `[middlebox]` from the twelfth line on.
fn read(keys: &str) -> Result<JavaSettings, String> {
    let text = format!("{PORTS}[middlebox]\n{keys}");
    let settings = Settings::from_text("conf/live.toml", &text).map_err(|error| error.to_string());
    Ok(settings?.java().expect("a handler in Java").clone())
}

#[test]
fn files_lie_beside_the_configuration_and_places_are_kept() {
    let java = read(
        "kind = \"java\"\njar = [\"fw.jar\", \"/lib/tamis.jar\"]\nclass = \"com.example.Firewall\"\n\
         jvm = \"jdk\"\noptions = [\"-Xmx64m\", \"-ea\"]\nring = 64\nplace = \"before\"\n",
    );
    let java = java.expect("a configuration");
    let jar: Vec<_> = java.jar.iter().filter_map(|named| named.path.to_str()).collect();
    assert_eq!(jar, ["conf/fw.jar", "/lib/tamis.jar"]);
    assert_eq!(java.jar[1].at, At { line: 13, column: 18 });
    assert_eq!((&*java.class, java.class_at), ("com.example.Firewall", At { line: 14, column: 9 }));
    let jvm = java.jvm.expect("a JVM");
    assert_eq!((jvm.path.to_str(), jvm.at), (Some("conf/jdk"), At { line: 15, column: 7 }));
    assert_eq!(java.options, ["-Xmx64m", "-ea"]);
    assert_eq!(
        (java.at, java.options_at),
        (At { line: 12, column: 8 }, At { line: 16, column: 11 })
    );
    let least =
        read("kind = \"java\"\njar = \"fw.jar\"\nclass = \"F\"\n").expect("a configuration");
    assert_eq!((least.jar.len(), least.jvm, least.options.len()), (1, None, 0));
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let java = |rest: &str| format!("kind = \"java\"\n{rest}\n");
    let all = |rest: &str| java(&format!("jar = \"a.jar\"\nclass = \"A\"\n{rest}"));
    let unknown = "what files and system calls a JVM needs is not known, so a run with a middlebox in Java \
                   cannot give them up";
    let required = format!("16:8: expected \"auto\" or \"off\": {unknown}");
    let cases = [
        ("kind = \"lua\"\n".into(), "12:8: expected one of java, found \"lua\""),
        (java("jar = \"a.jar\""), "11:1: expected class = … in this [middlebox]"),
        (java("class = \"A\""), "11:1: expected jar = … in this [middlebox]"),
        (java("class = \"\"\njar = \"a.jar\""), "13:9: expected the name of a class, found \"\""),
        (java("class = \"A\"\njar = []"), "14:7: expected at least one file"),
        (java("class = \"A\"\njar = [1]"), "14:8: expected a string, found integer"),
        (java("class = \"A\"\njar = \"\""), "14:7: expected the name of a file, found \"\""),
        (
            java("class = \"A\"\njar = \"a:b.jar\""),
            "14:7: expected a path in UTF-8 without :, which separates those of a class path",
        ),
        (all("jvm = 17"), "15:7: expected a string, found integer"),
        (all("options = \"-ea\""), "15:11: expected a list of strings, found string"),
        (
            all("options = [\"-ea\", \"ea\"]"),
            "15:19: expected an option of the JVM, which begins with -",
        ),
        (
            all("main = \"A\""),
            "15:1: expected one of kind place on_error ring jar class jvm options, found \"main\"",
        ),
        (all("[privileges]\ndrop = \"required\""), &required),
    ];
    for (keys, expected) in cases {
        assert_eq!(read(&keys), Err(format!("conf/live.toml:{expected}")), "{keys}");
    }
    for drop in ["auto", "off"] {
        assert!(read(&all(&format!("[privileges]\ndrop = \"{drop}\""))).is_ok(), "{drop}");
    }
}
