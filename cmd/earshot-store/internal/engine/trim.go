package engine

import (
	"fmt"
	"path/filepath"
	"runtime/debug"

	"github.com/earshot-dev/earshot/core/pages"
)

// Trim returns memory that statements have left: what Go holds for the next ones, and the pages of the library that are
// mapped. The engine's allocator returns its own by itself; SYSTEM JEMALLOC PURGE found no more. It does nothing and returns
// false while parts are merged.
func (e *Engine) Trim() (done bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.anchor == nil {
		return true, nil
	}
	running, err := e.anchor.lines("SELECT count() FROM system.merges")
	if err != nil {
		return false, fmt.Errorf("engine: list merges: %w", err)
	}
	if len(running) != 1 || running[0] != "0" {
		return false, nil
	}
	debug.FreeOSMemory()
	if _, err := pages.Release(e.file); err != nil {
		return false, fmt.Errorf("engine: %w", err)
	}
	return true, nil
}

// Working reports whether the engine merges parts or changes rows.
func (e *Engine) Working() (bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.anchor == nil {
		return false, nil
	}
	n, err := e.anchor.lines("SELECT (SELECT count() FROM system.merges) + (SELECT count() FROM system.mutations WHERE NOT is_done)")
	if err != nil {
		return false, fmt.Errorf("engine: list its work: %w", err)
	}
	return len(n) != 1 || n[0] != "0", nil
}

// mapped is the name of a library in the list of this process's mappings.
func mapped(library string) string {
	path, err := filepath.Abs(library)
	if err != nil {
		return library
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved
	}
	return path
}
