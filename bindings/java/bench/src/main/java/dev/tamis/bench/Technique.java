package dev.tamis.bench;

/** A way to share the structs of a pool with native code, and to do the study's job on them. */
@FunctionalInterface
interface Technique {
    /** The most structs that are handed over at once. */
    int BURST = 256;

    /**
     * Takes so many structs, one after the other, and does the job on each.
     *
     * @return what all their fields added up to
     */
    long round(int packets);
}
