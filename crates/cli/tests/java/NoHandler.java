/** Handles nothing. */
public class NoHandler {}
