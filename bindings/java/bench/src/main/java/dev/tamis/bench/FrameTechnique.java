package dev.tamis.bench;

/** A way to do the realistic job on frames in native memory. */
@FunctionalInterface
interface FrameTechnique {
    /** Takes so many frames in such bursts, and gives the last burst back. */
    void round(int packets, int burst);
}
