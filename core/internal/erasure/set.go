package erasure

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/msg"
)

// setName is the file with a line for each erased session: its key, and when it was erased.
const setName = "erased"

// Set is the erased sessions of a data directory. It may be used by several goroutines.
type Set struct {
	path string
	mu   sync.Mutex // of Add
	keys atomic.Pointer[map[string]struct{}]
}

// OpenSet reads the set of a data directory.
func OpenSet(dir string) (*Set, error) {
	s := &Set{path: filepath.Join(dir, setName)}
	f, err := os.Open(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("erased sessions: %w", err)
	}
	defer f.Close()
	keys := make(map[string]struct{})
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if key, _, ok := strings.Cut(lines.Text(), " "); ok {
			keys[key] = struct{}{}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("erased sessions: %w", err)
	}
	s.keys.Store(&keys)
	return s, nil
}

// Add adds sessions. It returns when they survive a power cut.
func (s *Set) Add(sessions []export.Session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := make(map[string]struct{})
	if old := s.keys.Load(); old != nil {
		keys = maps.Clone(*old)
	}
	var lines strings.Builder
	for _, x := range sessions {
		k := x.Key()
		if _, ok := keys[k]; !ok {
			keys[k] = struct{}{}
			fmt.Fprintf(&lines, "%s %s\n", k, time.Now().UTC().Format(time.RFC3339))
		}
	}
	f, err := os.OpenFile(s.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("erased sessions: %w", err)
	}
	_, err = f.WriteString(lines.String())
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("erased sessions: %w", err)
	}
	s.keys.Store(&keys)
	return nil
}

// Has reports whether a session is erased.
func (s *Set) Has(tenant, session string) bool {
	keys := s.keys.Load()
	if keys == nil || len(*keys) == 0 || session == "" {
		return false
	}
	_, ok := (*keys)[export.Session{Tenant: tenant, ID: session}.Key()]
	return ok
}

// Strip removes the records of sessions from a batch, and reports whether there were any.
func Strip(b *export.Batch, erased func(tenant, session string) bool) (changed bool) {
	n := b.Len()
	b.Messages = slices.DeleteFunc(b.Messages, func(m *msg.Message) bool { return erased(m.Host.Tenant, m.Session) })
	b.Spans = slices.DeleteFunc(b.Spans, func(s *msg.Span) bool { return erased(s.Tenant, s.Session) })
	b.Verdicts = slices.DeleteFunc(b.Verdicts, func(v msg.Verdict) bool { return erased(v.Tenant, v.Session) })
	b.DeadLetters = slices.DeleteFunc(b.DeadLetters, func(l msg.DeadLetter) bool { return erased(l.Tenant, l.Session) })
	b.Streams = slices.DeleteFunc(b.Streams, func(s msg.Stream) bool { return erased(s.Tenant, s.Session) })
	return b.Len() != n
}
