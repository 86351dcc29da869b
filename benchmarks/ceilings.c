/* What this machine reaches at most, for the roofline of benchmarks/beside.py.

       ceilings THREADS SECONDS MEBIBYTES

   prints a line of JSON: the rate of fused multiply-adds on f32 in registers, in GFLOP/s, and the
   rates of reading an array from memory and of one that stays in a core's own cache, in GB/s. Each
   is the best of as many tries as fit into SECONDS. MEBIBYTES is the size of the array in memory,
   over all threads; it should be several times the last level cache. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#if defined(__AVX512F__)
#define WIDTH 16
#elif defined(__AVX__)
#define WIDTH 8
#else
#define WIDTH 4
#endif
typedef float vector __attribute__((vector_size(WIDTH * 4)));

/* Enough chains to fill two units of a latency of four, few enough for the registers. */
#define CHAINS 12
#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define STEPS 1000000L
#define PAGE (2L << 20)
#define CACHED (128L << 10) /* bytes: within every level 2 cache, beyond most of level 1 */

enum what { MULTIPLY_ADD, READ };

struct task {
    enum what what;
    const vector *data;
    long count;   /* vectors */
    long repeats; /* passes over them */
    pthread_barrier_t *start;
    double begun, ended;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Without these the compiler would see that no result is used. */
#if defined(__x86_64__)
#define KEPT(v) __asm__ volatile("" : "+x"(v))
#elif defined(__aarch64__)
#define KEPT(v) __asm__ volatile("" : "+w"(v))
#else
#define KEPT(v) __asm__ volatile("" : "+m"(v))
#endif
#if defined(__AVX512F__)
#undef KEPT
#define KEPT(v) __asm__ volatile("" : "+v"(v))
#endif

static void multiply_add(void)
{
    vector m, c;
    for (int j = 0; j < WIDTH; j++) {
        m[j] = 0.999f;
        c[j] = 0.001f;
    }
    /* Names, not an array: gcc keeps an array of such values in memory. */
#define BEGIN(k) vector a##k = c;
#define STEP(k)         \
    a##k = a##k * m + c; \
    KEPT(a##k);
    EACH(BEGIN)
    for (long i = 0; i < STEPS; i++) {
        EACH(STEP)
    }
}

static void read_all(const vector *data, long count, long repeats)
{
    vector s[8] = {0};
    for (long r = 0; r < repeats; r++) {
        for (long i = 0; i < count; i += 8) {
#pragma GCC unroll 8
            for (int k = 0; k < 8; k++)
                s[k] += data[i + k];
        }
#pragma GCC unroll 8
        for (int k = 0; k < 8; k++)
            KEPT(s[k]);
    }
}

static void *run(void *argument)
{
    struct task *task = argument;
    pthread_barrier_wait(task->start);
    task->begun = now();
    if (task->what == MULTIPLY_ADD)
        multiply_add();
    else
        read_all(task->data, task->count, task->repeats);
    task->ended = now();
    return NULL;
}

/* Seconds from the first thread's start to the last one's end. */
static double once(enum what what, int threads, const vector *data, long count, long repeats)
{
    pthread_t ids[threads];
    struct task tasks[threads];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, (unsigned)threads);
    for (int t = 0; t < threads; t++) {
        tasks[t] = (struct task){what, data + t * count, count, repeats, &start, 0, 0};
        if (pthread_create(&ids[t], NULL, run, &tasks[t]) != 0)
            exit(1);
    }
    double begun = 1e300, ended = 0;
    for (int t = 0; t < threads; t++) {
        pthread_join(ids[t], NULL);
        begun = tasks[t].begun < begun ? tasks[t].begun : begun;
        ended = tasks[t].ended > ended ? tasks[t].ended : ended;
    }
    pthread_barrier_destroy(&start);
    return ended - begun;
}

/* The shortest of the tries that fit into some seconds. */
static double best(double limit, enum what what, int threads, const vector *data, long count,
                   long repeats)
{
    double least = 1e300, end = now() + limit;
    do {
        double taken = once(what, threads, data, count, repeats);
        least = taken < least ? taken : least;
    } while (now() < end);
    return least;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    int threads = atoi(argv[1]);
    double limit = atof(argv[2]) / 3;
    long block = 8 * (long)sizeof(vector);
    long part = (atol(argv[3]) << 20) / threads / block * block;
    if (threads < 1 || part < CACHED)
        return 2;
    float *data = aligned_alloc(PAGE, (size_t)((part * threads + PAGE - 1) / PAGE * PAGE));
    if (data == NULL)
        return 1;
#ifdef MADV_HUGEPAGE /* else the walk of page tables is measured as well */
    madvise(data, (size_t)(part * threads), MADV_HUGEPAGE);
#endif
    for (long i = 0; i < part * threads / 4; i++)
        data[i] = 1.0f;
    const vector *vectors = (const vector *)data;
    long size = (long)sizeof(vector), repeats = 2000;
    double operations = 2.0 * CHAINS * STEPS * WIDTH * threads;
    double fma = operations / best(limit, MULTIPLY_ADD, threads, vectors, 0, 0);
    double memory = (double)part * threads / best(limit, READ, threads, vectors, part / size, 1);
    double cached = (double)CACHED * (double)repeats * threads;
    cached /= best(limit, READ, threads, vectors, CACHED / size, repeats);
    printf("{\"gflops\": %.1f, \"memory\": %.1f, \"cache\": %.1f}\n", fma / 1e9, memory / 1e9,
           cached / 1e9);
    free(data);
    return 0;
}
