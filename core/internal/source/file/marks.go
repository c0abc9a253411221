package file

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// markLen is how many bytes a mark takes in at most.
const markLen = 1 << 10

// sum is a hash of up to markLen bytes. The bytes themselves are not kept: they
// may hold what must not reach a disk.
type sum uint64

func sumOf(b []byte) sum {
	h := sha256.Sum256(b)
	return sum(binary.BigEndian.Uint64(h[:]))
}

func (s sum) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%016x", uint64(s)), nil }

func (s *sum) UnmarshalText(b []byte) error {
	v, err := strconv.ParseUint(string(b), 16, 64)
	*s = sum(v)
	return err
}

// marks tell whether a content is the one that was read before: what it begins
// with, and what stands before the place up to which it was read. The second is
// what tells a file from its successor when both begin alike.
type marks struct {
	off     int64 // up to here it was read: a line begins here
	head    sum   // of the first headLen bytes
	headLen int
	tail    sum // of the last bytes before off, markLen or all
}

// marksAt reads the marks of a content that was read up to off. The head takes in
// what was read, but at least least bytes.
func marksAt(r io.ReaderAt, off int64, least int) (marks, error) {
	m := marks{off: off, headLen: int(min(max(off, int64(least)), markLen))}
	buf := make([]byte, markLen)
	n, _, err := readAt(r, buf[:m.headLen], 0)
	if err != nil {
		return marks{}, err
	}
	if n < m.headLen {
		return marks{}, errReplaced
	}
	m.head = sumOf(buf[:n])
	behind, err := behind(r, off, buf)
	m.tail = sumOf(behind)
	return m, err
}

// behind reads the bytes before off, as many as a mark takes in, into buf. It
// fails with errReplaced when the content does not go that far.
func behind(r io.ReaderAt, off int64, buf []byte) ([]byte, error) {
	buf = buf[:min(off, markLen)]
	n, _, err := readAt(r, buf, off-int64(len(buf)))
	if err == nil && n < len(buf) {
		err = errReplaced
	}
	return buf[:n], err
}

// in reports whether r has the marks.
func (m marks) in(r io.ReaderAt) (bool, error) {
	now, err := marksAt(r, m.off, m.headLen)
	if errors.Is(err, errReplaced) {
		return false, nil
	}
	return now == m, err
}

// alike reports whether a content of that size may be an earlier or a later state
// of the one with the marks.
func (m marks) alike(r io.ReaderAt, size int64) (bool, error) {
	switch {
	case size >= m.off:
		return m.in(r)
	case size < int64(m.headLen):
		return true, nil // not to be seen from the marks
	}
	now, err := marksAt(r, 0, m.headLen)
	if errors.Is(err, errReplaced) {
		return false, nil
	}
	return now.head == m.head, err
}

// moved returns the marks after the bytes in used were read as well; before are
// those that the tail was made of. All that were read since must be in used, or at
// least markLen of them.
func (m marks) moved(before, used []byte, off int64) marks {
	if m.headLen < markLen && off > int64(m.headLen) { // then before begins with the file
		head := append(append(make([]byte, 0, markLen), before...), used[:min(len(used), markLen-len(before))]...)
		m.head, m.headLen = sumOf(head), len(head)
	}
	if len(used) >= markLen {
		m.tail = sumOf(used[len(used)-markLen:])
	} else {
		all := append(append(make([]byte, 0, 2*markLen), before...), used...)
		m.tail = sumOf(all[max(0, len(all)-markLen):])
	}
	m.off = off
	return m
}

// movedTo is moved when the bytes that were read are not at hand any more.
func (m marks) movedTo(r io.ReaderAt, off int64) (marks, error) {
	if m.headLen < markLen {
		return marksAt(r, off, m.headLen)
	}
	b, err := behind(r, off, make([]byte, markLen))
	m.off, m.tail = off, sumOf(b)
	return m, err
}
