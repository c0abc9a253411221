// Package spool keeps the batches that an exporter cannot take now: a queue of records in a
// directory, first in, first out.
//
//	Append ──► N.spool, N+1.spool, … ──► Peek, Take
//	            ▲ cursor: read index      ▲ write index: the end of the last segment
//
// A record has its length and a checksum. Append returns when the record survives a power
// cut; the cursor is not synced, so that after a power cut records may come a second time,
// but none is lost. A segment is removed when all of its records are taken.
//
// A crash can leave a part of a record at the end of the last segment. It was never
// acknowledged, and Open cuts it off (Torn). Any other record that does not match its
// checksum is damage: Peek reports it once, with the number of bytes that are lost, and goes
// on with the next record. Where the damage is in a length, the next record is the first
// offset from which lengths lead exactly to the end of the segment and whose checksum
// is right.
package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/earshot-dev/earshot/core/internal/segment"
)

const (
	ext         = "spool"
	cursorName  = "cursor"
	headSize    = 8        // length and checksum, both big endian
	maxRecord   = 1 << 30  // a length beyond is damage
	segmentSize = 16 << 20 // at which the next segment begins
)

var table = crc32.MakeTable(crc32.Castagnoli)

// ErrDamaged means that records could not be read. They are dropped.
var ErrDamaged = errors.New("spool: damaged")

// ErrEmpty means that there is no record.
var ErrEmpty = errors.New("spool: empty")

// Queue may be used by two goroutines, one that appends and one that takes.
type Queue struct {
	dir segment.Dir

	mu       sync.Mutex
	segments []segment.Info // the oldest first
	floor    uint64         // the highest number that the cursor can name: a new segment has a higher one
	at       int64          // read index in the first segment: the oldest record
	next     int64          // behind that record, once it has been read
	in       segment.File   // the first segment; nil: not open
	out      *segment.Writer
	limit    int64 // bytes of a segment
	torn     int64
}

// Open opens or creates the queue in the directory.
func Open(dir string) (*Queue, error) {
	q := &Queue{dir: segment.Dir{Path: dir, Disk: segment.OS{}}, limit: segmentSize}
	if err := q.load(); err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	return q, nil
}

func (q *Queue) path(id uint64) string { return q.dir.File(id, ext) }

func (q *Queue) load() error {
	if err := os.MkdirAll(q.dir.Path, 0o700); err != nil {
		return err
	}
	var err error
	if q.segments, err = q.dir.List(ext); err != nil {
		return err
	}
	if n := len(q.segments); n > 0 {
		last := &q.segments[n-1]
		w, cut, err := q.dir.Recover(last.ID, ext, lastRecord)
		if err != nil {
			return err
		}
		q.torn, last.Size = cut, w.Size()
		if err := w.Close(); err != nil {
			return err
		}
	}
	return q.loadCursor()
}

// loadCursor drops the segments before the cursor.
func (q *Queue) loadCursor() error {
	b, err := os.ReadFile(filepath.Join(q.dir.Path, cursorName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var id uint64
	var at int64
	if _, err := fmt.Sscan(string(b), &id, &at); err != nil {
		return nil // there is none yet
	}
	q.floor = id
	for len(q.segments) > 0 && q.segments[0].ID < id {
		if err := q.drop(); err != nil {
			return err
		}
	}
	if len(q.segments) > 0 && q.segments[0].ID == id {
		q.at = min(max(at, 0), q.segments[0].Size)
	}
	return nil
}

// lastRecord returns the end of the last record of a segment. A record that is whole by its
// length, or that other records follow, is kept for Peek to report.
func lastRecord(f io.ReaderAt, size int64) (int64, error) {
	end := int64(0)
	for end < size {
		b, err := readAt(f, end, size)
		switch {
		case err == nil:
			end += headSize + int64(len(b))
			continue
		case !errors.Is(err, ErrDamaged):
			return 0, err
		}
		next, whole, err := behind(f, end, size)
		if err != nil {
			return 0, err
		}
		if next == size && !whole {
			break
		}
		end = next
	}
	return end, nil
}

// Torn is how many bytes of a record that was never acknowledged Open cut off.
func (q *Queue) Torn() int64 { return q.torn }

// behind finds the record behind a damaged one at an offset of a file of that size; the
// size when there is none. whole reports whether the damaged record itself is complete
// by its length.
func behind(f io.ReaderAt, at, size int64) (next int64, whole bool, err error) {
	rest := make([]byte, size-at)
	if _, err := f.ReadAt(rest, at); err != nil {
		return 0, false, err
	}
	whole = leads(rest, 0)
	for off := 1; off+headSize <= len(rest); off++ {
		if !leads(rest, off) {
			continue
		}
		n := int(binary.BigEndian.Uint32(rest[off:]))
		if sum(rest[off:off+4], rest[off+headSize:off+headSize+n]) == binary.BigEndian.Uint32(rest[off+4:]) {
			return at + int64(off), whole, nil
		}
	}
	return size, whole, nil
}

// leads reports whether lengths lead from an offset exactly to the end.
func leads(b []byte, off int) bool {
	for off+headSize <= len(b) {
		n := binary.BigEndian.Uint32(b[off:])
		if n > maxRecord {
			return false
		}
		off += headSize + int(n)
	}
	return off == len(b)
}

// Append adds a record. It returns when the record survives a power cut.
func (q *Queue) Append(b []byte) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.append(b); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	return nil
}

func (q *Queue) append(b []byte) error {
	if len(b) > maxRecord {
		return fmt.Errorf("record of %d bytes", len(b))
	}
	if q.out == nil || q.out.Size() >= q.limit {
		if err := q.roll(); err != nil {
			return err
		}
	}
	if err := q.out.Append(appendRecord(make([]byte, 0, headSize+len(b)), b)); err != nil {
		// The record can go into another segment, which needs no copy of this one.
		return errors.Join(err, q.closeOut())
	}
	q.segments[len(q.segments)-1].Size = q.out.Size()
	return nil
}

// roll begins a segment. One that is empty, because no record could be written, is begun again: a disk
// may be full for days.
func (q *Queue) roll() error {
	if err := q.closeOut(); err != nil {
		return err
	}
	next := segment.Info{ID: q.floor + 1}
	if n := len(q.segments); n > 0 {
		last := q.segments[n-1]
		next.ID = max(next.ID, last.ID+1)
		if last.Size == 0 && last.ID > q.floor {
			next, q.segments = last, q.segments[:n-1]
		}
	}
	w, err := q.dir.Create(next.ID, ext)
	if err != nil {
		return err
	}
	q.out = w
	q.segments = append(q.segments, next)
	return nil
}

func (q *Queue) closeOut() error {
	w := q.out
	if q.out = nil; w == nil {
		return nil
	}
	return w.Close()
}

// Peek returns the oldest record. ErrEmpty: there is none. ErrDamaged: some could
// not be read and are dropped; the next call goes on behind them.
func (q *Queue) Peek() ([]byte, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	b, err := q.peek()
	if err != nil && !errors.Is(err, ErrEmpty) && !errors.Is(err, ErrDamaged) {
		err = fmt.Errorf("spool: %w", err)
	}
	return b, err
}

func (q *Queue) peek() ([]byte, error) {
	for len(q.segments) > 0 {
		first := q.segments[0]
		if q.at >= first.Size {
			if len(q.segments) == 1 && q.out != nil { // it may grow
				break
			}
			if err := q.drop(); err != nil {
				return nil, err
			}
			continue
		}
		if q.in == nil {
			f, err := q.dir.Disk.Read(q.path(first.ID))
			if err != nil {
				return nil, err
			}
			q.in = f
		}
		b, err := readAt(q.in, q.at, first.Size)
		if errors.Is(err, ErrDamaged) {
			next, _, err := behind(q.in, q.at, first.Size)
			if err != nil {
				return nil, err
			}
			err = fmt.Errorf("%w: %s, %d bytes from %d on", ErrDamaged, q.path(first.ID), next-q.at, q.at)
			q.at = next
			return nil, err
		}
		if err != nil {
			return nil, err
		}
		q.next = q.at + headSize + int64(len(b))
		return b, nil
	}
	return nil, ErrEmpty
}

// Take removes the record that Peek returned.
func (q *Queue) Take() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.take(); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	return nil
}

func (q *Queue) take() error {
	q.at = q.next
	if q.at >= q.segments[0].Size { // no record is left to which a cursor would point
		if len(q.segments) == 1 {
			if err := q.closeOut(); err != nil {
				return err
			}
		}
		return q.drop()
	}
	return q.writeCursor()
}

func (q *Queue) writeCursor() error {
	tmp := filepath.Join(q.dir.Path, cursorName+".tmp")
	err := os.WriteFile(tmp, fmt.Appendf(nil, "%d %d\n", q.segments[0].ID, q.at), 0o600)
	if err == nil {
		err = os.Rename(tmp, filepath.Join(q.dir.Path, cursorName))
	}
	if err != nil {
		return fmt.Errorf("cursor: %w", err)
	}
	return nil
}

// drop removes the first segment. The removal is not synced: after a power cut the segment
// may be there again, like records behind an old cursor.
func (q *Queue) drop() error {
	if q.in != nil {
		_ = q.in.Close()
		q.in = nil
	}
	id := q.segments[0].ID
	if err := q.dir.Disk.Remove(q.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	q.segments, q.floor = q.segments[1:], max(q.floor, id)
	q.at, q.next = 0, 0
	return nil
}

// Size is how many bytes the queue has on the disk.
func (q *Queue) Size() (n int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, s := range q.segments {
		n += s.Size
	}
	return n
}

// Close closes the files.
func (q *Queue) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	err := q.closeOut()
	if q.in != nil {
		err = errors.Join(err, q.in.Close())
		q.in = nil
	}
	return err
}

// readAt reads the record at an offset of a file of that size.
func readAt(f io.ReaderAt, at, size int64) ([]byte, error) {
	var head [headSize]byte
	if at+headSize > size {
		return nil, ErrDamaged
	}
	if _, err := f.ReadAt(head[:], at); err != nil {
		return nil, err
	}
	n := int64(binary.BigEndian.Uint32(head[:]))
	if n > maxRecord || at+headSize+n > size {
		return nil, ErrDamaged
	}
	b := make([]byte, n)
	if _, err := f.ReadAt(b, at+headSize); err != nil {
		return nil, err
	}
	if sum(head[:4], b) != binary.BigEndian.Uint32(head[4:]) {
		return nil, ErrDamaged
	}
	return b, nil
}

func sum(head, b []byte) uint32 { return crc32.Update(crc32.Checksum(head, table), table, b) }
