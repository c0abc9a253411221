// Package spool keeps what an exporter cannot take now: a queue of byte strings in
// a directory, first in, first out.
//
// A queue is a row of segments (N.spool) of records, each with its length and a
// checksum, and a cursor that says where the oldest record is that has not been
// taken. Append returns when the record survives a power cut; the cursor does not
// wait for the disk, so that after a power cut records may come a second time, and
// never not at all. A segment whose records have been taken is removed.
//
// A crash can leave a part of a record at the end of the last segment. It was never
// acknowledged, and Open cuts it off (Torn). Any other record that does not match its
// checksum is damage: Peek reports it once, with the bytes that it cost, and goes on
// with the next record. Where the damage is in a length, the next record is the first
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
	"slices"
	"strconv"
	"strings"
	"sync"
)

const (
	suffix     = ".spool"
	cursorName = "cursor"
	headSize   = 8        // length and checksum, both big endian
	maxRecord  = 1 << 30  // a length beyond is damage
	segment    = 16 << 20 // at which the next one is begun
)

var table = crc32.MakeTable(crc32.Castagnoli)

// ErrDamaged says that records could not be read. They are dropped.
var ErrDamaged = errors.New("spool: damaged")

// ErrEmpty says that there is no record.
var ErrEmpty = errors.New("spool: empty")

// Queue may be used by two goroutines, one that appends and one that takes.
type Queue struct {
	dir string

	mu    sync.Mutex
	ids   []uint64 // of the segments, the oldest first
	sizes map[uint64]int64
	floor uint64   // the highest that the cursor can name: no segment takes its place
	at    int64    // in the first segment: the oldest record
	next  int64    // behind it, once it has been read
	in    *os.File // the first segment; nil: not open
	out   *os.File // the last one; nil: the next record begins another
	most  int64
	torn  int64
}

// Open opens or creates the queue in the directory.
func Open(dir string) (*Queue, error) {
	q := &Queue{dir: dir, sizes: make(map[uint64]int64), most: segment}
	if err := q.load(); err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	return q, nil
}

func (q *Queue) path(id uint64) string {
	return filepath.Join(q.dir, fmt.Sprintf("%012d%s", id, suffix))
}

func (q *Queue) load() error {
	if err := os.MkdirAll(q.dir, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(q.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		id, err := strconv.ParseUint(strings.TrimSuffix(e.Name(), suffix), 10, 64)
		if err != nil || !strings.HasSuffix(e.Name(), suffix) {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		q.ids = append(q.ids, id)
		q.sizes[id] = info.Size()
	}
	slices.Sort(q.ids)
	if err := q.cut(); err != nil {
		return err
	}
	b, err := os.ReadFile(filepath.Join(q.dir, cursorName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var id uint64
	var at int64
	if _, err := fmt.Sscan(string(b), &id, &at); err == nil {
		q.floor = id
		for len(q.ids) > 0 && q.ids[0] < id {
			if err := q.drop(); err != nil {
				return err
			}
		}
		if len(q.ids) > 0 && q.ids[0] == id {
			q.at = min(max(at, 0), q.sizes[id])
		}
	}
	return nil
}

// cut removes the part of a record that a crash left at the end. What looks like a
// whole record, or has records behind it, stays for Peek to report.
func (q *Queue) cut() error {
	if len(q.ids) == 0 {
		return nil
	}
	id := q.last()
	f, err := os.OpenFile(q.path(id), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	size := q.sizes[id]
	end := int64(0)
	for end < size {
		b, err := readAt(f, end, size)
		switch {
		case err == nil:
			end += headSize + int64(len(b))
			continue
		case !errors.Is(err, ErrDamaged):
			return errors.Join(err, f.Close())
		}
		next, whole, err := behind(f, end, size)
		if err != nil {
			return errors.Join(err, f.Close())
		}
		if next == size && !whole {
			break
		}
		end = next
	}
	if q.torn = size - end; q.torn > 0 {
		q.sizes[id] = end
		err = f.Truncate(end)
	}
	return errors.Join(err, f.Close())
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
	if q.out == nil || q.sizes[q.last()] >= q.most {
		if err := q.begin(); err != nil {
			return err
		}
	}
	id := q.last()
	end := q.sizes[id]
	rec := make([]byte, headSize, headSize+len(b))
	binary.BigEndian.PutUint32(rec, uint32(len(b)))
	binary.BigEndian.PutUint32(rec[4:], sum(rec[:4], b))
	_, err := q.out.WriteAt(append(rec, b...), end)
	if err == nil {
		err = q.out.Sync()
	}
	if err != nil {
		// Nobody knows what the file has now: it ends where it did, and the next record
		// goes into another.
		_ = q.out.Truncate(end)
		err = errors.Join(err, q.out.Close())
		q.out = nil
		return err
	}
	q.sizes[id] = end + int64(len(rec)+len(b))
	return nil
}

func (q *Queue) last() uint64 {
	if len(q.ids) == 0 {
		return 0
	}
	return q.ids[len(q.ids)-1]
}

// begin begins a segment.
func (q *Queue) begin() error {
	if q.out != nil {
		err := q.out.Close()
		q.out = nil
		if err != nil {
			return err
		}
	}
	id := max(q.last(), q.floor) + 1
	f, err := os.OpenFile(q.path(id), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err := syncDir(q.dir); err != nil {
		return errors.Join(err, f.Close(), os.Remove(q.path(id)))
	}
	q.out = f
	q.ids = append(q.ids, id)
	q.sizes[id] = 0
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Peek returns the oldest record. ErrEmpty: there is none. ErrDamaged: some could
// not be read and are dropped; the next call goes on behind them.
func (q *Queue) Peek() ([]byte, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if len(q.ids) == 0 {
			return nil, ErrEmpty
		}
		id := q.ids[0]
		if q.at >= q.sizes[id] {
			if len(q.ids) == 1 && q.out != nil { // it may grow
				return nil, ErrEmpty
			}
			if err := q.drop(); err != nil {
				return nil, fmt.Errorf("spool: %w", err)
			}
			continue
		}
		if q.in == nil {
			f, err := os.Open(q.path(id))
			if err != nil {
				return nil, fmt.Errorf("spool: %w", err)
			}
			q.in = f
		}
		b, err := readAt(q.in, q.at, q.sizes[id])
		if errors.Is(err, ErrDamaged) {
			next, _, err := behind(q.in, q.at, q.sizes[id])
			if err != nil {
				return nil, fmt.Errorf("spool: %w", err)
			}
			err = fmt.Errorf("%w: %s, %d bytes from %d on", ErrDamaged, q.path(id), next-q.at, q.at)
			q.at = next
			return nil, err
		}
		if err != nil {
			return nil, fmt.Errorf("spool: %w", err)
		}
		q.next = q.at + headSize + int64(len(b))
		return b, nil
	}
}

// Take removes the record that Peek returned.
func (q *Queue) Take() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.at = q.next
	if q.at >= q.sizes[q.ids[0]] { // nothing is left that a cursor would point to
		if q.out != nil && len(q.ids) == 1 {
			err := q.out.Close()
			q.out = nil
			if err != nil {
				return fmt.Errorf("spool: %w", err)
			}
		}
		if err := q.drop(); err != nil {
			return fmt.Errorf("spool: %w", err)
		}
		return nil
	}
	tmp := filepath.Join(q.dir, cursorName+".tmp")
	err := os.WriteFile(tmp, fmt.Appendf(nil, "%d %d\n", q.ids[0], q.at), 0o600)
	if err == nil {
		err = os.Rename(tmp, filepath.Join(q.dir, cursorName))
	}
	if err != nil {
		return fmt.Errorf("spool: cursor: %w", err)
	}
	return nil
}

// drop removes the first segment.
func (q *Queue) drop() error {
	if q.in != nil {
		_ = q.in.Close()
		q.in = nil
	}
	id := q.ids[0]
	if err := os.Remove(q.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	q.ids, q.floor = q.ids[1:], max(q.floor, id)
	delete(q.sizes, id)
	q.at, q.next = 0, 0
	return nil
}

// Size is how many bytes the queue has on the disk.
func (q *Queue) Size() (n int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, size := range q.sizes {
		n += size
	}
	return n
}

// Close closes the files.
func (q *Queue) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	var err error
	for _, f := range []*os.File{q.in, q.out} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	q.in, q.out = nil, nil
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
