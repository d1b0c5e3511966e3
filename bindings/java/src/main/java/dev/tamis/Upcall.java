package dev.tamis;

import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Modifier;

/**
 * A worker of a run whose JVM tamis has started: tamis calls its handler by this, once for each
 * burst.
 *
 * <p>Contract: tamis alone calls these methods, by their names. It has registered the functions of
 * {@link Native} before, and calls all methods of an object from the thread of its worker. Nothing
 * but {@link #handlers} throws.
 */
final class Upcall {
    private static final System.Logger LOG = System.getLogger("dev.tamis");

    private final Dispatch dispatch;

    private Upcall(Dispatch dispatch) {
        this.dispatch = dispatch;
    }

    /**
     * An object of this class for each worker.
     *
     * @throws TamisException if there is no such class, or none can be made; the message goes after
     *     its place in the configuration
     */
    static Handler[] handlers(String name, int workers) {
        Constructor<? extends Handler> constructor = constructor(type(name));
        Handler[] handlers = new Handler[workers];
        for (int worker = 0; worker < workers; worker++) {
            handlers[worker] = made(constructor);
        }
        return handlers;
    }

    private static Class<? extends Handler> type(String name) {
        try {
            Class<?> type = Class.forName(name);
            if (!Handler.class.isAssignableFrom(type)
                    || type.isInterface()
                    || Modifier.isAbstract(type.getModifiers())) {
                throw new TamisException(
                        "expected a class that implements dev.tamis.Handler, found " + name);
            }
            return type.asSubclass(Handler.class);
        } catch (ClassNotFoundException e) {
            throw new TamisException("no class " + name + " is in the class path of jar", e);
        } catch (LinkageError e) {
            throw new TamisException("class " + name + " cannot be loaded: " + e, e);
        }
    }

    private static Constructor<? extends Handler> constructor(Class<? extends Handler> type) {
        try {
            Constructor<? extends Handler> constructor = type.getDeclaredConstructor();
            constructor.setAccessible(true);
            return constructor;
        } catch (NoSuchMethodException e) {
            throw new TamisException(
                    "expected a constructor without parameters, which " + type.getName() + " lacks",
                    e);
        }
    }

    private static Handler made(Constructor<? extends Handler> constructor) {
        String name = constructor.getDeclaringClass().getName();
        try {
            return constructor.newInstance();
        } catch (InvocationTargetException e) {
            LOG.log(System.Logger.Level.ERROR, "the constructor of " + name, e.getCause());
            throw new TamisException(
                    "the constructor of " + name + " has thrown " + e.getCause(), e);
        } catch (ReflectiveOperationException | LinkageError e) {
            throw new TamisException("no object of class " + name + " can be made: " + e, e);
        }
    }

    /** Those of a run that goes, for these handlers. */
    static Upcall[] workers(Handler[] handlers, long handle) {
        Run run = new Run(handle, handlers.length);
        Upcall[] workers = new Upcall[handlers.length];
        for (int worker = 0; worker < workers.length; worker++) {
            workers[worker] = new Upcall(run.dispatch(worker, handlers[worker]));
        }
        return workers;
    }

    /** The handler begins: whether it could. */
    boolean begin(long descriptors) {
        try {
            dispatch.begin(descriptors);
            return true;
        } catch (Throwable t) {
            dispatch.endedBy(t);
            return false;
        }
    }

    /** So many packets wait, or with 0 none for a while: whether it goes on. */
    boolean take(int waiting) {
        try {
            dispatch.take(waiting);
            return true;
        } catch (Throwable t) {
            dispatch.endedBy(t);
            return false;
        }
    }

    /** The handler ends. */
    void close() {
        dispatch.close();
    }
}
