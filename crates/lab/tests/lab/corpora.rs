//! The committed fuzzing corpora, and every input that once did harm (`fuzz/corpus/TARGET/crash-*`), fed
//! to their targets. None may panic.

use std::path::Path;

use lab::fuzz::TARGETS;

#[test]
fn no_input_of_the_corpora_does_harm() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (name, target) in TARGETS {
        let mut inputs = 0;
        for entry in std::fs::read_dir(root.join(name)).expect("every target has a corpus") {
            let path = entry.unwrap().path();
            println!("{}", path.display());
            target(&std::fs::read(path).unwrap());
            inputs += 1;
        }
        assert!(inputs > 0, "the corpus of {name} is empty");
    }
}
