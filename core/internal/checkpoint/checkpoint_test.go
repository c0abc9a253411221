package checkpoint

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"
)

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func commit(t *testing.T, s *Store, deltas ...Delta) {
	t.Helper()
	if err := s.Commit(deltas...); err != nil {
		t.Fatal(err)
	}
}

func keys(t *testing.T, s *Store, source string) (out []string) {
	t.Helper()
	list, err := s.Streams(source)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range list {
		out = append(out, st.Source+"/"+st.Key)
	}
	return out
}

// TestStreams: the streams of one source are those whose source has that name, not one that begins with it.
func TestStreams(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	full := Stream{Source: "quay", Key: "1", Pos: 7, Snapshot: []byte{0, 1}, Poison: map[int64]string{3: "bad"}, Replay: &Replay{Runs: []string{"r"}, Until: 9}}
	commit(t, s, Delta{Streams: []Stream{full, {Source: "quay", Key: ""}, {Source: "quays", Key: "1"}, {Source: "a", Key: "1"}, {Source: "z", Key: ""}, {Source: "a", Key: "2"}}})
	commit(t, s, Delta{Forget: []Stream{{Source: "a", Key: "2"}, {Source: "a", Key: "unknown"}}})
	check := func() {
		t.Helper()
		for source, want := range map[string][]string{
			"": {"a/1", "quay/", "quay/1", "quays/1", "z/"}, "quay": {"quay/", "quay/1"}, "quays": {"quays/1"}, "a": {"a/1"}, "y-longer": nil, "z": {"z/"},
		} {
			if d := cmp.Diff(want, keys(t, s, source)); d != "" {
				t.Errorf("%q: %s", source, d)
			}
		}
		if got, ok, err := s.Stream("quay", "1"); err != nil || !ok || !cmp.Equal(got, full) {
			t.Errorf("%+v, %v, %v", got, ok, err)
		}
		if _, ok, err := s.Stream("a", "2"); err != nil || ok {
			t.Errorf("a forgotten stream: %v, %v", ok, err)
		}
	}
	check()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	check()
}

// TestGroups: states of all sizes are as they were committed, and the open groups are known.
func TestGroups(t *testing.T) {
	s := open(t, t.TempDir())
	large := bytes.Repeat([]byte("0123456789abcdef, of a session; "), 3000)
	commit(t, s, Delta{Groups: []Group{{Key: "large", Open: true, State: large}, {Key: "small", State: []byte("x")}, {Key: "none", State: []byte{}}, {Key: "gone", Open: true, State: large}}})
	commit(t, s, Delta{Groups: []Group{{Key: "gone"}, {Key: "open", Open: true, State: []byte("y")}, {Key: "later", Open: true, State: []byte("z")}}})
	commit(t, s, Delta{Groups: []Group{{Key: "later", State: []byte("closed")}}})
	want := map[string]string{"large": string(large), "small": "x", "none": "", "open": "y", "later": "closed"}
	for key, state := range want {
		if got, err := s.Group(key); err != nil || string(got) != state {
			t.Errorf("%s: %d bytes, %v", key, len(got), err)
		}
	}
	for _, key := range []string{"gone", "unknown"} {
		if got, err := s.Group(key); err != nil || got != nil {
			t.Errorf("%s: %q, %v", key, got, err)
		}
	}
	if got, err := s.OpenGroups(); err != nil || !cmp.Equal(got, []string{"large", "open"}) {
		t.Errorf("open: %v, %v", got, err)
	}
	all := make(map[string]string)
	if err := s.Groups(func(key string, state []byte) error { all[key] = string(state); return nil }); err != nil || !cmp.Equal(all, want) {
		t.Errorf("%d groups, %v", len(all), err)
	}
	stop := errors.New("stop")
	if err := s.Groups(func(string, []byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the error of the visitor: %v", err)
	}
}

// TestAllOrNothing: of deltas with one that cannot be written nothing is there.
func TestAllOrNothing(t *testing.T) {
	s := open(t, t.TempDir())
	good := Delta{Streams: []Stream{{Source: "a", Key: "1"}}, Groups: []Group{{Key: "g", State: []byte("x")}}}
	for name, bad := range map[string]Delta{
		"a stream's key": {Streams: []Stream{{Source: "a", Key: strings.Repeat("k", bbolt.MaxKeySize)}}},
		"a group's key":  {Groups: []Group{{State: []byte("x")}}},
	} {
		if err := s.Commit(good, bad, good); err == nil {
			t.Errorf("%s: committed", name)
		}
		if got := keys(t, s, ""); got != nil {
			t.Errorf("%s: %v", name, got)
		}
		if g, err := s.Group("g"); g != nil || err != nil {
			t.Errorf("%s: %q, %v", name, g, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(good); err == nil {
		t.Error("committed to a closed file")
	}
	if err := s.SetDestination("x", "y"); err == nil {
		t.Error("written to a closed file")
	}
}

// TestFresh: a directory is fresh once, and keeps the destinations of its exporters.
func TestFresh(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "directory")
	s := open(t, dir)
	if id, err := s.Destination("store"); !s.Fresh() || id != "" || err != nil {
		t.Errorf("fresh %v, destination %q, %v", s.Fresh(), id, err)
	}
	for exporter, id := range map[string]string{"store": "one", "otel": "two"} {
		if err := s.SetDestination(exporter, id); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if id, err := s.Destination("store"); s.Fresh() || id != "one" || err != nil {
		t.Errorf("fresh %v, destination %q, %v", s.Fresh(), id, err)
	}
}

// TestNoDirectory: a path that cannot have the file is an error, not damage.
func TestNoDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	taken := t.TempDir()
	if err := os.Mkdir(filepath.Join(taken, "checkpoint.db"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Join(file, "x"), taken} {
		if s, err := Open(dir); err == nil || errors.Is(err, ErrDamaged) || s != nil {
			t.Errorf("%v", err)
		}
	}
}

func TestWritten(t *testing.T) {
	if n := (&Stream{Pos: 7, Ledgered: 3}).Written(); n != 7 {
		t.Error(n)
	}
	if n := (&Stream{Format: "f", Pos: 7, Ledgered: 3}).Written(); n != 3 {
		t.Error(n)
	}
}
