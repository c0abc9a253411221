package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	chgo "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/earshot-dev/earshot/core/export"
)

// Codes of ClickHouse that blame the rows. Everything else may pass: the network,
// a server that is full, busy, read-only, being restarted or without a quorum, a
// schema or a password that a person will correct. A batch with such an error is
// offered again without end, because refusing it would drop rows for a fault that
// is not theirs.
const (
	codeParseText        = 6
	codeParseQuotedText  = 26
	codeParseInput       = 27
	codeParseDate        = 38
	codeParseDateTime    = 41
	codeTypeMismatch     = 53
	codeConvertType      = 70
	codeParseNumber      = 72
	codeIncorrectData    = 117
	codeTooLargeString   = 131
	codeTooLargeArray    = 128
	codeDecimalOverflow  = 407
	codeOutOfRange       = 321
	codeNullInNotNull    = 349
	codeViolated         = 469
	codeTooManyParts     = 252
	codeTooManyPartsText = "partitions for single INSERT block"
	codeTooManyInTotal   = "in all partitions in total"
)

// Codes of ClickHouse with which it refuses a statement of the schema, and will
// again: no right to it, no such cluster, another dialect.
const (
	codeBadArguments    = 36
	codeUnknownFunction = 46
	codeNotImplemented  = 48
	codeUnknownType     = 50
	codeUnknownEngine   = 56
	codeSyntax          = 62
	codeUnknownSetting  = 115
	codeReadonly        = 164
	codeNoSuchThing     = 170
	codeNotEnabled      = 344
	codeAccessDenied    = 497
	codeNoCluster       = 701
)

// replacedMeanwhile reports that a statement of the schema may have met a table or view
// in the moment in which another program, at an earlier or a later migration, replaced it.
func replacedMeanwhile(err error) bool {
	const notFoundColumn, noSuchColumn, unknownIdentifier, tableExists, unknownTable, fileGone, isDropped, cannotAssignAlter, notExchanged = 10, 16, 47, 57, 60, 107, 218, 517, 521
	var ex *chgo.Exception
	if !errors.As(err, &ex) {
		return false
	}
	switch ex.Code {
	case notFoundColumn, noSuchColumn, unknownIdentifier, tableExists, unknownTable, fileGone, isDropped, cannotAssignAlter, notExchanged:
		return true
	}
	return false
}

func refusesSchema(code int32) bool {
	switch code {
	case codeBadArguments, codeUnknownFunction, codeNotImplemented, codeUnknownType, codeUnknownEngine, codeSyntax,
		codeUnknownSetting, codeReadonly, codeNoSuchThing, codeNotEnabled, codeAccessDenied, codeNoCluster:
		return true
	}
	return false
}

func blamesRows(code int32, message string) bool {
	switch code {
	case codeParseText, codeParseQuotedText, codeParseInput, codeParseDate, codeParseDateTime,
		codeTypeMismatch, codeConvertType, codeParseNumber, codeIncorrectData,
		codeTooLargeString, codeTooLargeArray, codeDecimalOverflow, codeOutOfRange, codeNullInNotNull, codeViolated:
		return true
	case codeTooManyParts:
		// One code, three meanings: a partition with too many parts, which merges will
		// mend; one insert into too many partitions, which only a smaller one does not
		// meet again; and a table with too many in all its partitions together, which
		// merges cannot mend, because they never join two partitions.
		return strings.Contains(message, codeTooManyPartsText) || strings.Contains(message, codeTooManyInTotal)
	}
	return false
}

// SchemaDiffers reports whether a query failed because a database, a table or a column
// that it names is not there.
func SchemaDiffers(err error) bool {
	switch code(err) {
	case 47, 60, codeUnknownDatabase: // UNKNOWN_IDENTIFIER, UNKNOWN_TABLE
		return true
	}
	return errors.Is(err, ErrNoTables)
}

const codeUnknownDatabase = 81

// code is the engine's code of an error; 0: it has none.
func code(err error) int32 {
	var ex *chgo.Exception
	if errors.As(err, &ex) {
		return ex.Code
	}
	return 0
}

// unanswered is the error of a query that the store has not answered in time. A person reads it on a page, without
// the steps of the client and the address of its request.
type unanswered struct{ cause error }

func (unanswered) Error() string {
	return "the store has not answered in time: it is busy, or is starting; try again in a moment"
}

func (u unanswered) Unwrap() error { return u.cause }

// cutOff is the error of a statement whose answer did not come whole, and is no error of the statement.
type cutOff struct {
	store string
	cause error
}

func (c cutOff) Error() string {
	return fmt.Sprintf("the store at %s ended, or was ended, before its answer was whole (%v): try again in a moment", c.store, c.cause)
}

func (c cutOff) Unwrap() error { return c.cause }

// CutOff reports whether a statement has no answer, or a part of one, because the process of the store has ended, or
// the one of a proxy. Another try may be answered. Whether the statement was carried out is not known.
func (c *Conn) CutOff(err error) bool {
	var known cutOff
	var answer *chgo.Exception
	var status *chgo.HTTPError
	switch {
	case errors.As(err, &known):
		return true
	case err == nil, errors.As(err, &answer), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false
	case errors.As(err, &status):
		return status.StatusCode == http.StatusBadGateway
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE),
		strings.Contains(err.Error(), "server closed idle connection"): // net/http has no value for it
		return true
	}
	return c.embedded && (errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)) // its socket has no listener
}

// plain is an error of a statement as a person reads it.
func (c *Conn) plain(err error) error {
	if !c.CutOff(err) {
		return c.withoutURL(err)
	}
	var op *net.OpError
	var status *chgo.HTTPError
	cause := err
	switch {
	case errors.As(err, &cutOff{}):
		return err
	case errors.As(err, &status):
	case errors.As(err, &op):
		cause = op.Err
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		cause = io.ErrUnexpectedEOF
	}
	return cutOff{c.redacted, cause}
}

// ErrNoTables is wrapped by the error of a query of a database that is not there: a sidecar makes it when it first starts. It is for a
// person who reads meanwhile, in place of the engine's words.
var ErrNoTables = errors.New("the store has no tables yet: a sidecar makes them within seconds when it first starts; try again in a moment, and ask `earshot doctor` if it stays so")

// refused is the error of a query.
func (c *Conn) refused(err error) error {
	if code(err) == codeUnknownDatabase {
		return fmt.Errorf("clickhouse: %w", ErrNoTables)
	}
	if errors.Is(err, chgo.ErrAcquireConnTimeout) {
		return fmt.Errorf("clickhouse: %w", unanswered{err})
	}
	return fmt.Errorf("clickhouse: query: %w", c.plain(err))
}

// withoutURL has the name of the store in the place of the URL of its request, which has every setting and parameter. Who
// wrapped the error has the URL in a text of its own.
func (c *Conn) withoutURL(err error) error {
	var u *url.Error
	if !errors.As(err, &u) {
		return err
	}
	return shortened{strings.ReplaceAll(err.Error(), u.URL, c.redacted), err}
}

// shortened is an error with another text.
type shortened struct {
	text  string
	cause error
}

func (s shortened) Error() string { return s.text }
func (s shortened) Unwrap() error { return s.cause }

// classify marks the error of an insert as permanent or passing, as the contract of
// export.Exporter has it. The outcome of an insert whose answer was lost is not known; the token
// makes it safe to run again, so that is an error that may pass.
func (c *Conn) classify(ctx context.Context, err error) error {
	var ex *chgo.Exception
	var status *chgo.HTTPError
	switch {
	case ctx.Err() != nil:
	case errors.As(err, &ex):
		if blamesRows(ex.Code, ex.Message) {
			return export.Permanent(err)
		}
	case errors.As(err, &status):
		if status.StatusCode == http.StatusRequestEntityTooLarge { // a proxy's limit: halves may pass it
			return export.Permanent(err)
		}
	}
	return c.mayPass(ctx, err)
}

// mayPass adds when to try again, if the server sent that.
func (c *Conn) mayPass(ctx context.Context, err error) error {
	err = c.withoutURL(err)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return errors.Join(err, cause)
	}
	if wait := c.throttle.take(); wait > 0 {
		return &export.RetryAfter{Err: err, Wait: wait}
	}
	return err
}
