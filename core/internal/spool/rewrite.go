package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/earshot-dev/earshot/core/internal/segment"
)

// Rewrite replaces records: change returns the bytes of a record, and whether they are others.
// Segments with such a record, and with records that were taken, are written again. The order stays, and a record that Peek
// returned is still the one that Take removes. Damaged records stay for Peek to report.
func (q *Queue) Rewrite(change func(record []byte) ([]byte, bool, error)) (changed int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.closeOut(); err != nil { // the next record begins a segment
		return 0, fmt.Errorf("spool: %w", err)
	}
	for i := range q.segments {
		n, err := q.rewrite(i, change)
		if changed += n; err != nil {
			return changed, fmt.Errorf("spool: rewrite: %w", err)
		}
	}
	return changed, nil
}

// rewrite writes a segment again. In the first one a record of zeros takes the place of the records
// that were taken: the cursor, which is durable before, holds for the segment of before and for this.
func (q *Queue) rewrite(i int, change func([]byte) ([]byte, bool, error)) (changed int, err error) {
	g := &q.segments[i]
	in, err := q.dir.Disk.Read(q.path(g.ID))
	if err != nil {
		return 0, err
	}
	defer in.Close()
	at, next, nextOut := int64(0), int64(0), int64(0)
	var out []byte
	if i == 0 && q.at > 0 {
		at, out = q.at, appendRecord(nil, make([]byte, q.at-headSize))
	}
	if i == 0 {
		next = q.next
	}
	for from := at; at < g.Size; {
		b, err := readAt(in, at, g.Size)
		if errors.Is(err, ErrDamaged) {
			end, _, err := behind(in, at, g.Size)
			if err != nil {
				return 0, err
			}
			bad := make([]byte, end-at)
			if _, err := in.ReadAt(bad, at); err != nil {
				return 0, err
			}
			out, at = append(out, bad...), end
			continue
		}
		if err != nil {
			return 0, err
		}
		to, other, err := change(b)
		if err != nil {
			return 0, err
		}
		if other {
			changed++
		}
		out = appendRecord(out, to)
		at += headSize + int64(len(b))
		if from < next && at == next {
			nextOut = int64(len(out))
		}
	}
	if changed == 0 && (i > 0 || q.at == 0) { // those that were taken may be others
		return 0, nil
	}
	if q.in != nil && i == 0 {
		_ = q.in.Close()
		q.in = nil
	}
	if i == 0 && q.at > 0 {
		if err := q.syncCursor(); err != nil {
			return 0, err
		}
	}
	if err := q.dir.Replace(q.path(g.ID), func(f segment.File) error { _, err := f.WriteAt(out, 0); return err }); err != nil {
		return 0, err
	}
	g.Size = int64(len(out))
	if nextOut > 0 {
		q.next = nextOut
	}
	return changed, nil
}

// syncCursor writes the cursor so that it survives a power cut.
func (q *Queue) syncCursor() error {
	if err := q.writeCursor(); err != nil {
		return err
	}
	f, err := q.dir.Disk.Open(filepath.Join(q.dir.Path, cursorName))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close(), q.dir.Disk.SyncDir(q.dir.Path))
}

// appendRecord appends the record of bytes.
func appendRecord(dst, b []byte) []byte {
	var head [headSize]byte
	binary.BigEndian.PutUint32(head[:], uint32(len(b)))
	binary.BigEndian.PutUint32(head[4:], sum(head[:4], b))
	return append(append(dst, head[:]...), b...)
}
