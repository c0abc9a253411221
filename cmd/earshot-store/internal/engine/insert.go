package engine

import (
	"unsafe"
)

// Inserter is a running INSERT that takes its rows from Write. The rows count
// only once Commit has returned without an error.
type Inserter struct {
	s *Session
	h handle
}

// Insert starts an INSERT. sql has neither FORMAT nor VALUES; format is that of
// the bytes to come ("Values" for the VALUES form).
func (s *Session) Insert(sql, format string, params []Param) (*Inserter, error) {
	i := &Inserter{s: s, h: s.conn.open(s.conn.lib.insertOpen, sql, format, params)}
	if msg := s.conn.lib.insertError(i.h); msg != "" {
		i.Close()
		return nil, s.failed(parseException(msg))
	}
	return i, nil
}

// Write hands over bytes; they are copied. It blocks while the engine is behind.
func (i *Inserter) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if i.s.conn.lib.insertAppend(i.h, unsafe.Pointer(&p[0]), uintptr(len(p))) == 0 {
		return len(p), nil
	}
	// The library returns the reason only at the end.
	_, err := i.Commit()
	if err == nil {
		err = BadArguments.New("The engine stopped reading the rows of this INSERT.")
	}
	return 0, i.s.failed(err)
}

// Commit ends the input and waits until the rows are in the table.
func (i *Inserter) Commit() (Stats, error) {
	lib := i.s.conn.lib
	h := lib.insertDone(i.h)
	defer lib.destroyResult(h)
	if msg := lib.resultError(h); msg != "" {
		return Stats{}, i.s.failed(parseException(msg))
	}
	return statsOf(lib, h), nil
}

// Close aborts an INSERT that was not committed, and frees it. Blocks that the
// engine has already written stay, as in ClickHouse; a Native body of one block
// is all or nothing.
func (i *Inserter) Close() {
	if i.h == 0 {
		return
	}
	i.s.conn.lib.insertDestroy(i.h) // cancels when it was not committed
	i.h = 0
}
