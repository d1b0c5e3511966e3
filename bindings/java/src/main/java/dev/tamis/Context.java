package dev.tamis;

/**
 * Which worker a handler belongs to.
 *
 * @param worker its number, from 0
 * @param workers how many there are
 */
public record Context(int worker, int workers) {}
