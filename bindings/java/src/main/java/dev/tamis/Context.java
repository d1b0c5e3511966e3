package dev.tamis;

/**
 * Which worker a handler belongs to.
 *
 * @param worker its number, from 0
 * @param workers how many there are
 * @param run the run, to be asked and changed while it goes: by this thread, or any other
 */
public record Context(int worker, int workers, Run run) {}
