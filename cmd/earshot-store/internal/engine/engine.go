package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// Config of an engine.
type Config struct {
	Library     string // path of libchdb.so
	Path        string // data folder, made when it is not there
	Connections int    // sessions at one time; more wait
	MaxMemory   uint64 // bytes at which statements are refused (code 241); 0 leaves the engine's 90 % of RAM
	_           struct{}
}

// Engine is one open data folder. Its methods may be called concurrently.
type Engine struct {
	lib      *library
	file     string // of the library, as it is mapped
	args     []string
	version  string
	timezone string
	settings map[string]bool // names of system.settings
	tables   []string        // see TableFunctions

	slots chan struct{}
	seq   atomic.Uint64

	mu     sync.Mutex // guards anchor: it kills, and keeps the engine alive between sessions
	anchor *connection
}

// cacheBounds limit how much reading adds to the resident memory. A server's defaults
// are up to 5 GiB for each. They save nothing while rows are written: that peak
// is the memory of merges, and no setting that we tried lowers it.
var cacheBounds = []string{
	"--mark_cache_size=67108864",
	"--primary_index_cache_size=67108864",
	"--index_mark_cache_size=33554432",
	"--query_condition_cache_size=16777216",
}

// fewThreads bounds the threads that are kept for the next statement, of which a server keeps a thousand: after a backlog there were a
// hundred on two cores, and each holds memory.
const fewThreads = "--max_thread_pool_free_size=8"

// sessionDefaults are the settings of every session that does not set them itself. Without the
// block sizes an INSERT gathers a million rows, however long they are: 1.5 GB of
// rows of 1 KB took 1.8 GiB, and take 0.2 to 0.45 GiB so, in a third of the time. A statement gets a thread for each
// 256 MiB that are free: by the engine's own gigabyte, under a limit of two, each had one thread on any machine. The partition of a row follows from its sort key in
// every table that is read with FINAL, so that no version of a row is in another one: a day that is one part is read without a merge.
var sessionDefaults = []string{
	"--implicit_select=0",
	"--max_insert_block_size_bytes=67108864",
	"--min_insert_block_size_bytes=67108864",
	"--max_threads_min_free_memory_per_thread=268435456",
	"--do_not_merge_across_partitions_select_final=1",
}

// Open loads the library and opens the folder. One process can hold one engine,
// and can open one only once: the library keeps state of its own.
func Open(cfg Config) (*Engine, error) {
	path, err := filepath.Abs(cfg.Path)
	if err != nil {
		return nil, fmt.Errorf("engine: data folder: %w", err)
	}
	if err := prepare(path); err != nil {
		return nil, err
	}
	config, err := writeAccess(path)
	if err != nil {
		return nil, err
	}
	lib, err := load(cfg.Library)
	if err != nil {
		return nil, err
	}
	lib.setSignalHandlers(0)
	e := &Engine{
		lib:   lib,
		file:  mapped(cfg.Library),
		args:  append([]string{"earshot-store", "--path=" + path}, sessionDefaults...),
		slots: make(chan struct{}, max(cfg.Connections, 1)),
	}
	boot := append([]string{"--config-file=" + config, "--default_database=" + overlay, fewThreads}, cacheBounds...)
	if cfg.MaxMemory > 0 {
		boot = append(boot, "--max_server_memory_usage="+strconv.FormatUint(cfg.MaxMemory, 10))
	}
	if e.anchor = e.connect(boot...); e.anchor == nil {
		return nil, fmt.Errorf("engine: the library could not open %s (its reason, if it printed one, is above)", path)
	}
	if err := e.boot(); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

func (e *Engine) boot() error {
	if _, err := e.anchor.lines("DROP DATABASE IF EXISTS " + overlay); err != nil {
		return fmt.Errorf("engine: drop the file overlay: %w", err)
	}
	about, err := e.anchor.lines("SELECT arrayJoin([version(), timezone()])")
	if err != nil {
		return fmt.Errorf("engine: ask for the version: %w", err)
	}
	e.version, e.timezone = about[0], about[1]
	names, err := e.anchor.lines("SELECT name FROM system.settings")
	if err != nil {
		return fmt.Errorf("engine: list settings: %w", err)
	}
	e.settings = make(map[string]bool, len(names))
	for _, name := range names {
		e.settings[name] = true
	}
	if e.tables, err = e.anchor.lines("SELECT name FROM system.table_functions"); err != nil {
		return fmt.Errorf("engine: list table functions: %w", err)
	}
	return nil
}

// Version is the engine's own, for example "26.7.2.1".
func (e *Engine) Version() string { return e.version }

// Timezone is the engine's, for example "Etc/UTC".
func (e *Engine) Timezone() string { return e.timezone }

// TableFunctions lists the names of all table functions of this engine.
func (e *Engine) TableFunctions() []string { return e.tables }

// Close closes the data folder. Every session must have been closed; one that
// hangs in the library makes Close hang too, so callers bound it.
func (e *Engine) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.anchor != nil {
		e.anchor.close()
		e.anchor = nil
	}
}

// connect opens a connection, or returns nil: the library returns no reason.
func (e *Engine) connect(args ...string) *connection {
	args = append(e.args[:len(e.args):len(e.args)], args...)
	var pin runtime.Pinner
	defer pin.Unpin()
	argv := make([]*byte, len(args)+1)
	for i, arg := range args {
		b := append([]byte(arg), 0)
		pin.Pin(&b[0])
		argv[i] = &b[0]
	}
	pin.Pin(&argv[0])
	ref := e.lib.connect(int32(len(args)), unsafe.Pointer(&argv[0]))
	if ref == nil {
		return nil
	}
	return &connection{lib: e.lib, ref: ref, conn: *ref}
}

// killWhenDone kills the statements of the session tag when ctx ends, again and
// again until stop is called: a statement that is only about to start is not
// listed yet, and would be missed by a single try.
func (e *Engine) killWhenDone(ctx context.Context, tag string) (stop func()) {
	finished := make(chan struct{})
	undo := context.AfterFunc(ctx, func() {
		for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
			e.kill(tag)
			select {
			case <-finished:
				return
			case <-time.After(wait):
			}
		}
	})
	return sync.OnceFunc(func() {
		undo()
		close(finished)
	})
}

func (e *Engine) kill(tag string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.anchor != nil {
		// Nothing to do about an error: the statement then runs to its end.
		e.anchor.lines("KILL QUERY WHERE Settings['query_cache_tag'] = " + quote(tag) + " ASYNC FORMAT Null")
	}
}

// quote writes s as a string literal of ClickHouse.
func quote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}

// quoteName writes s as an identifier of ClickHouse.
func quoteName(s string) string {
	return "`" + strings.NewReplacer(`\`, `\\`, "`", "\\`").Replace(s) + "`"
}

var errClosed = errors.New("engine: closed")
