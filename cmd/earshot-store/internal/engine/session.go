package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unsafe"
)

// Setting is a query-level setting of ClickHouse, or a server's word for it.
type Setting struct{ Name, Value string }

// Param is the value of a {name:Type} placeholder, in the escaped form of a TSV
// field, as ClickHouse's HTTP interface takes it.
type Param struct{ Name, Value string }

// ErrNotStreamable is the error of Session.Stream for a statement that is not a
// SELECT. Nothing has run then.
var ErrNotStreamable = errors.New("engine: statement cannot be streamed")

// SessionOptions of a session.
type SessionOptions struct {
	ID       string // shows in system.processes as Settings['query_cache_tag']
	Database string // current database; "default" when empty
	Settings []Setting
	_        struct{}
}

// Session is one connection. One goroutine uses it, for one statement at a time.
type Session struct {
	eng  *Engine
	ctx  context.Context
	conn *connection
	stop func()
}

// Session waits for a free slot and opens a connection. ctx covers the session's
// whole life. Errors are of type *Exception, or the cause of ctx.
func (e *Engine) Session(ctx context.Context, o SessionOptions) (*Session, error) {
	select {
	case e.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	s, err := e.session(ctx, o)
	if err != nil {
		<-e.slots
		return nil, err
	}
	return s, nil
}

func (e *Engine) session(ctx context.Context, o SessionOptions) (*Session, error) {
	tag := fmt.Sprintf("%s#%d", o.ID, e.seq.Add(1))
	args := make([]string, 0, len(o.Settings)+1)
	for _, s := range o.Settings {
		if !e.settings[s.Name] {
			return nil, UnknownSetting.New("Unknown setting '%s'.", s.Name)
		}
		if strings.IndexByte(s.Value, 0) >= 0 {
			return nil, BadArguments.New("Setting '%s' has a NUL byte in its value.", s.Name)
		}
		if s.Name == "max_parser_depth" {
			if depth, err := strconv.Atoi(s.Value); err != nil || depth < 1 || depth > maxParserDepth {
				return nil, BadArguments.New("Setting 'max_parser_depth' must be between 1 and %d in the embedded engine.", maxParserDepth)
			}
		}
		args = append(args, "--"+s.Name+"="+s.Value)
	}
	args = append(args, "--query_cache_tag="+strings.ReplaceAll(tag, "\x00", ""))
	conn := e.connect(args...)
	if conn == nil {
		return nil, e.whyNot(o.Settings)
	}
	if o.Database != "" && o.Database != "default" {
		if _, err := conn.lines("USE " + quoteName(o.Database)); err != nil {
			conn.close()
			return nil, err
		}
	}
	return &Session{eng: e, ctx: ctx, conn: conn, stop: e.killWhenDone(ctx, tag)}, nil
}

// whyNot finds the setting whose value the engine does not take.
func (e *Engine) whyNot(settings []Setting) error {
	conn := e.connect()
	if conn == nil {
		return errClosed
	}
	defer conn.close()
	for _, s := range settings {
		if _, err := conn.lines("SET " + quoteName(s.Name) + " = " + quote(s.Value)); err != nil {
			return err
		}
	}
	return BadArguments.New("The engine refused the settings of this request.")
}

// maxParserDepth is far below where the library would overflow its stack.
const maxParserDepth = 10_000

// Close ends the session. Its Rows, Results and Inserters are closed before it.
func (s *Session) Close() {
	if s.conn == nil {
		return
	}
	s.stop()
	s.conn.close()
	s.conn = nil
	<-s.eng.slots
}

// failed prefers the reason why the session was cut short over the error of the killed
// statement.
func (s *Session) failed(err error) error {
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	return err
}

// Exec runs one statement to its end. format is the format of a SELECT without FORMAT.
func (s *Session) Exec(sql, format string, params []Param) (*Result, error) {
	r, err := s.conn.run(sql, format, params)
	if err != nil {
		return nil, s.failed(err)
	}
	return r, nil
}

// Stream starts a SELECT. The format must be one whose outputs can be concatenated.
func (s *Session) Stream(sql, format string, params []Param) (*Rows, error) {
	h := s.conn.open(s.conn.lib.streamQuery, sql, format, params)
	if msg := s.conn.lib.resultError(h); msg != "" {
		s.conn.lib.destroyResult(h)
		e := parseException(msg)
		if e.Code == BadArguments.number && strings.HasPrefix(e.Message, "Streaming query is not supported") {
			return nil, ErrNotStreamable
		}
		return nil, s.failed(e)
	}
	return &Rows{s: s, stream: h}, nil
}

// Rows is the output of a running SELECT.
type Rows struct {
	s      *Session
	stream handle
	chunk  handle
	done   bool
}

// Next returns the next piece of output, valid until the next call, or io.EOF.
func (r *Rows) Next() ([]byte, error) {
	r.free()
	if r.done {
		return nil, io.EOF
	}
	lib := r.s.conn.lib
	r.chunk = lib.streamFetch(r.s.conn.conn, r.stream)
	if msg := lib.resultError(r.chunk); msg != "" {
		r.done = true
		return nil, r.s.failed(parseException(msg))
	}
	if b := bytesOf(lib, r.chunk); len(b) > 0 {
		return b, nil
	}
	r.done = true
	return nil, io.EOF
}

// Close stops the statement if it still runs, and frees it.
func (r *Rows) Close() {
	if r.stream == 0 {
		return
	}
	r.free()
	lib := r.s.conn.lib
	if !r.done {
		lib.streamStop(r.s.conn.conn, r.stream)
	}
	lib.destroyResult(r.stream)
	r.stream = 0
}

func (r *Rows) free() {
	if r.chunk != 0 {
		r.s.conn.lib.destroyResult(r.chunk)
		r.chunk = 0
	}
}

// Class is the kind of a statement, by the engine's own parser.
type Class struct {
	Statements int  // how many there are; 0 when the text does not parse
	ReadOnly   bool // every one of them leaves no trace, not even a file
}

// Classify parses sql without running it.
func (s *Session) Classify(sql string) Class {
	report := struct{ size, statements, flags, class uint32 }{size: 16}
	q, n := text(sql)
	if s.conn.lib.classify(s.conn.conn, q, n, nil, 0, unsafe.Pointer(&report)) != 0 {
		return Class{}
	}
	return Class{Statements: int(report.statements), ReadOnly: report.statements > 0 && report.class == 0}
}

// Canonical returns sql as the engine's parser prints it on one line: without
// comments, with plain quotes. Text that is not one statement is an *Exception.
func (s *Session) Canonical(sql string) (string, error) {
	escaped := strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`, "\x00", `\0`).Replace(sql)
	const ask = "SELECT formatQuerySingleLine({q:String})"
	r, err := s.Exec(ask, "RawBLOB", []Param{{"q", escaped}})
	var e *Exception
	if errors.As(err, &e) {
		e.Message, _, _ = strings.Cut(e.Message, ": In scope SELECT formatQuerySingleLine") // our scope, not the user's
	}
	if err != nil {
		return "", err
	}
	defer r.Close()
	return string(r.Bytes()), nil
}
