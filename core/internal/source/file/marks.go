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
	is, whole, err := m.match(r)
	return is && whole, err
}

// match reports whether r has the marks, or may have had them or come to have them:
// then it ends before them, and whole is false. The beginning is looked at first,
// since an archive has to be unpacked up to the rest.
func (m marks) match(r io.ReaderAt) (is, whole bool, err error) {
	head, err := marksAt(r, 0, m.headLen)
	if err == nil && head.head != m.head {
		return false, false, nil
	}
	var before []byte
	if err == nil {
		before, err = behind(r, m.off, make([]byte, markLen))
	}
	if errors.Is(err, errReplaced) {
		return true, false, nil
	}
	return sumOf(before) == m.tail, true, err
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
