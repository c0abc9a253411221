// Package checkpoint is the durable state of a sidecar: up to where every stream is
// committed, the snapshot of its decoder, and the assembler's state, all of one moment.
// Deltas enter, and after a restart streams and groups leave as the last commit left them.
// A commit replaces all entries of its delta or none.
//
// It is a bbolt file. bbolt was chosen because it is one small, well-kept file
// format with transactions and a lock on the file, and a sidecar commits about
// once a second; the collectors' reports of corrupt bbolt files are of databases
// opened without fsync, which this one is not.
//
// The states of sessions are JSON, and the file is mapped into memory: they are kept
// compressed (S2), a quarter as large, at a tenth of the time to write the rest.
package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/s2"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// Stream is the record of one stream.
type Stream struct {
	Source string `json:"source"`
	Key    string `json:"key"`
	Origin string `json:"origin,omitempty"`
	Anchor int64  `json:"anchor,omitempty"`
	State  []byte `json:"state,omitempty"` // the source's own

	Pos      int64  `json:"pos"` // everything before it is with the exporters
	SnapPos  int64  `json:"snap_pos,omitempty"`
	Snapshot []byte `json:"snapshot,omitempty"`  // of the decoder, at SnapPos
	FlushPos int64  `json:"flush_pos,omitempty"` // where the decoder was flushed
	Clock
	Days   []int32 `json:"days,omitempty"`   // since 1970, of its times; bounded by the pipeline
	Closed bool    `json:"closed,omitempty"` // its source has closed it
	// Erased: the state of its decoder would have erased sessions, so there is no snapshot, and the
	// stream is decoded from its beginning after a restart.
	Erased bool `json:"erased,omitempty"`
	// Format is that of its decoder, and Ledgered up to where its row in the table of accounts
	// was written; Format is empty in records of builds that wrote the row with each record.
	Format   string `json:"format,omitempty"`
	Ledgered int64  `json:"ledgered,omitempty"`
	// Session and Run are those of the first message with a run of the top level.
	Session string `json:"session,omitempty"`
	Run     string `json:"run,omitempty"`
	// Response is the model response of its messages; Several: there are more than this one.
	Response string `json:"response,omitempty"`
	Several  bool   `json:"several,omitempty"`
	// Poison are the quarantined frames, by position, with the reason.
	Poison map[int64]string `json:"poison,omitempty"`

	Decoded     int64 `json:"decoded,omitempty"`
	Quarantined int64 `json:"quarantined,omitempty"`
	Dropped     int64 `json:"dropped,omitempty"`
	// Reason is that of the last drop, and DroppedAt when that was read.
	Reason    string `json:"reason,omitempty"`
	DroppedAt int64  `json:"dropped_at,omitempty"`

	Frames   int64 `json:"frames,omitempty"`
	Messages int64 `json:"messages,omitempty"`
	Unknown  int64 `json:"unknown,omitempty"`
	Problems int64 `json:"problems,omitempty"`

	// Replay is set while the stream is decoded again because the parent of some runs
	// was found late: up to Until, only the messages of these runs are emitted.
	Replay *Replay `json:"replay,omitempty"`
}

// Written is up to where the destination's table of accounts has the stream, at least.
func (s *Stream) Written() int64 {
	if s.Format == "" {
		return s.Pos
	}
	return s.Ledgered
}

// Clock is the last known times of a stream; Unix ns.
type Clock struct {
	Last   int64 `json:"last_time,omitempty"` // in the protocol
	LastAt int64 `json:"said_at,omitempty"`   // when the frame with Last was read
	Read   int64 `json:"read_at,omitempty"`   // when the last frame was read
}

// Replay is an unfinished second decoding of a stream.
type Replay struct {
	Runs  []string `json:"runs"`
	Until int64    `json:"until"`
}

// Delta is a change of the checkpoint.
type Delta struct {
	Streams []Stream
	Forget  []Stream // by Source and Key
	Groups  []Group
}

// Group is the assembler's state of one session; a nil State forgets it.
type Group struct {
	Key   string
	Open  bool // something in it is still running
	State []byte
}

// ErrLocked means that another process uses the data directory.
var ErrLocked = errors.New("in use by another earshot process")

var (
	bucketStreams = []byte("streams") // source \0 key -> Stream
	bucketGroups  = []byte("groups")  // key -> 0|1, state in S2
	bucketMeta    = []byte("meta")
)

// version is that of the layout of the file.
const version = "2"

// Store is an open checkpoint.
type Store struct {
	swap   sync.RWMutex // held while db is replaced
	db     *bbolt.DB
	path   string
	fresh  bool
	packed []byte // scratch of the one transaction that writes
}

// Open opens or creates the checkpoint in the directory. ErrLocked when another
// process has it open.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	path := filepath.Join(dir, "checkpoint.db")
	db, err := lock(path)
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fmt.Errorf("checkpoint: %s: %w", dir, ErrLocked)
	}
	switch {
	case errors.Is(err, ErrDamaged):
		return nil, err
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum), errors.Is(err, bolterrors.ErrVersionMismatch):
		return nil, fmt.Errorf("checkpoint: %s: %w (%w)", path, ErrDamaged, err)
	case err != nil:
		return nil, fmt.Errorf("checkpoint: %s: %w", path, err)
	}
	fresh := false
	s := &Store{db: db, path: path}
	err = s.update(func(tx *bbolt.Tx) error {
		for _, b := range [][]byte{bucketStreams, bucketGroups, bucketMeta} {
			if _, err := tx.CreateBucketIfNotExists(b); err != nil {
				return err
			}
		}
		meta := tx.Bucket(bucketMeta)
		if v := meta.Get([]byte("version")); v == nil {
			fresh = true
			return meta.Put([]byte("version"), []byte(version))
		} else if string(v) != version {
			return fmt.Errorf("layout %s, this program knows %s: %w", v, version, ErrLayout)
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("checkpoint: %s: %w", path, err), s.Close())
	}
	s.fresh = fresh
	return s, nil
}

// lock opens the file, which nobody else has open then. While it waited for another process, that may have
// replaced the file by Compact: the lock of the former file is none of the directory.
func lock(path string) (db *bbolt.DB, err error) {
	for replaced := true; replaced && err == nil; {
		var file *os.File
		err = guarded(path, func() (err error) {
			db, err = bbolt.Open(path, 0o600, &bbolt.Options{Timeout: 200 * time.Millisecond, OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
				var err error
				file, err = os.OpenFile(name, flag, mode)
				return file, err
			}})
			return err
		})
		if err != nil {
			break
		}
		var locked, there os.FileInfo
		if locked, err = file.Stat(); err == nil {
			there, err = os.Stat(path)
		}
		if replaced = !os.SameFile(locked, there); replaced || err != nil {
			err = errors.Join(err, db.Close())
		}
	}
	return db, err
}

func (s *Store) view(f func(*bbolt.Tx) error) error {
	s.swap.RLock()
	defer s.swap.RUnlock()
	return guarded(s.path, func() error { return s.db.View(f) })
}

func (s *Store) update(f func(*bbolt.Tx) error) error {
	s.swap.RLock()
	defer s.swap.RUnlock()
	return guarded(s.path, func() error { return s.db.Update(f) })
}

// Fresh reports whether the directory had no checkpoint before it was opened.
func (s *Store) Fresh() bool { return s.fresh }

// Destination returns the identity of an exporter's destination, which holds everything before the
// positions; empty when it is not known.
func (s *Store) Destination(exporter string) (id string, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		id = string(tx.Bucket(bucketMeta).Get(destinationKey(exporter)))
		return nil
	})
	return id, err
}

// SetDestination changes it.
func (s *Store) SetDestination(exporter, id string) error {
	err := s.update(func(tx *bbolt.Tx) error { return tx.Bucket(bucketMeta).Put(destinationKey(exporter), []byte(id)) })
	if err != nil {
		return fmt.Errorf("checkpoint: destination: %w", err)
	}
	return nil
}

func destinationKey(exporter string) []byte { return []byte("destination " + exporter) }

// Close closes the file.
func (s *Store) Close() error {
	s.swap.Lock()
	defer s.swap.Unlock()
	return s.db.Close()
}

// Streams returns the streams of a source, or of all sources when it is empty.
func (s *Store) Streams(source string) ([]Stream, error) {
	var out []Stream
	err := s.view(func(tx *bbolt.Tx) error {
		c := tx.Bucket(bucketStreams).Cursor()
		var prefix []byte
		if source != "" {
			prefix = append([]byte(source), 0)
		}
		for k, v := c.Seek(prefix); k != nil && hasPrefix(k, prefix); k, v = c.Next() {
			var st Stream
			if err := json.Unmarshal(v, &st); err != nil {
				return fmt.Errorf("checkpoint: stream %q: %w (%w)", k, ErrDamaged, err)
			}
			out = append(out, st)
		}
		return nil
	})
	return out, err
}

// Stream returns one stream; ok is false when it is not known.
func (s *Store) Stream(source, key string) (st Stream, ok bool, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		v := tx.Bucket(bucketStreams).Get(streamKey(source, key))
		if v == nil {
			return nil
		}
		ok = true
		if err := json.Unmarshal(v, &st); err != nil {
			return fmt.Errorf("checkpoint: stream %s: %w (%w)", key, ErrDamaged, err)
		}
		return nil
	})
	return st, ok, err
}

// Group returns the assembler's state for a key; nil when there is none.
func (s *Store) Group(key string) ([]byte, error) {
	var out []byte
	err := s.view(func(tx *bbolt.Tx) error {
		v := tx.Bucket(bucketGroups).Get([]byte(key))
		if len(v) == 0 {
			return nil
		}
		var err error
		if out, err = s2.Decode(nil, v[1:]); err != nil {
			return fmt.Errorf("checkpoint: group %q: %w (%w)", key, ErrDamaged, err)
		}
		return nil
	})
	return out, err
}

// OpenGroups returns the keys of the groups in which something is running.
func (s *Store) OpenGroups() ([]string, error) {
	var out []string
	err := s.view(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketGroups).ForEach(func(k, v []byte) error {
			if len(v) > 0 && v[0] == 1 {
				out = append(out, string(k))
			}
			return nil
		})
	})
	return out, err
}

// pack returns the value of a group in its bucket. The caller is in a transaction that
// writes.
func (s *Store) pack(g *Group) []byte {
	s.packed = s2.Encode(s.packed[:cap(s.packed)], g.State)
	v := make([]byte, 1, len(s.packed)+1)
	if g.Open {
		v[0] = 1
	}
	return append(v, s.packed...)
}

// Commit makes the changes durable, one after the other, all of them or none.
func (s *Store) Commit(deltas ...Delta) error {
	if !slices.ContainsFunc(deltas, func(d Delta) bool { return len(d.Streams)+len(d.Forget)+len(d.Groups) > 0 }) {
		return nil
	}
	err := s.update(func(tx *bbolt.Tx) error {
		for i := range deltas {
			if err := s.apply(tx, &deltas[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = s.view(func(tx *bbolt.Tx) error {
			if tx.Size() > mapped {
				unmap(tx)
			}
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("checkpoint: commit: %w", err)
	}
	return nil
}

// mapped is how large a file may stay in memory from one commit to the next: that of 50,000 sessions
// has hundreds of megabytes, of which a commit touches a few.
const mapped = 32 << 20

func (s *Store) apply(tx *bbolt.Tx, d *Delta) error {
	streams, groups := tx.Bucket(bucketStreams), tx.Bucket(bucketGroups)
	for i := range d.Streams {
		st := &d.Streams[i]
		b, err := json.Marshal(st)
		if err != nil {
			return fmt.Errorf("stream %s: %w", st.Key, err)
		}
		if err := streams.Put(streamKey(st.Source, st.Key), b); err != nil {
			return fmt.Errorf("stream %s: %w", st.Key, err)
		}
	}
	for _, st := range d.Forget {
		if err := streams.Delete(streamKey(st.Source, st.Key)); err != nil {
			return fmt.Errorf("stream %s: %w", st.Key, err)
		}
	}
	for _, g := range d.Groups {
		if g.State == nil {
			if err := groups.Delete([]byte(g.Key)); err != nil {
				return fmt.Errorf("group: %w", err)
			}
			continue
		}
		if err := groups.Put([]byte(g.Key), s.pack(&g)); err != nil {
			return fmt.Errorf("group: %w", err)
		}
	}
	return nil
}

func streamKey(source, key string) []byte { return []byte(source + "\x00" + key) }

func hasPrefix(b, prefix []byte) bool {
	return len(b) >= len(prefix) && string(b[:len(prefix)]) == string(prefix)
}
