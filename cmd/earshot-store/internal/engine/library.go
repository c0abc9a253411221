package engine

import (
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"
)

// handle is a pointer of the library's own. It is never dereferenced here.
type handle uintptr

// library holds the entry points that are used, under the names of the C API
// without their prefix.
type library struct {
	setSignalHandlers func(enabled int32)
	connect           func(argc int32, argv unsafe.Pointer) *handle
	closeConn         func(conn *handle)

	query       func(conn handle, sql unsafe.Pointer, n uintptr, format unsafe.Pointer, fn uintptr, p1, p2, p3, p4 unsafe.Pointer, pn uintptr) handle
	streamQuery func(conn handle, sql unsafe.Pointer, n uintptr, format unsafe.Pointer, fn uintptr, p1, p2, p3, p4 unsafe.Pointer, pn uintptr) handle
	streamFetch func(conn, stream handle) handle
	streamStop  func(conn, stream handle)

	resultBuffer  func(result handle) unsafe.Pointer
	resultLength  func(result handle) uintptr
	resultError   func(result handle) string
	rowsRead      func(result handle) uint64
	bytesRead     func(result handle) uint64
	rowsWritten   func(result handle) uint64
	bytesWritten  func(result handle) uint64
	destroyResult func(result handle)

	insertOpen    func(conn handle, sql unsafe.Pointer, n uintptr, format unsafe.Pointer, fn uintptr, p1, p2, p3, p4 unsafe.Pointer, pn uintptr) handle
	insertAppend  func(insert handle, data unsafe.Pointer, n uintptr) int32
	insertDone    func(insert handle) handle
	insertError   func(insert handle) string
	insertDestroy func(insert handle)

	classify func(conn handle, sql unsafe.Pointer, n uintptr, db unsafe.Pointer, dbn uintptr, out unsafe.Pointer) int32
}

// load opens the library at path. It stays loaded until the process ends.
func load(path string) (*library, error) {
	so, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("engine: load library: %w", err)
	}
	l := &library{}
	for name, fn := range map[string]any{
		"chdb_set_signal_handlers_enabled": &l.setSignalHandlers,
		"chdb_connect":                     &l.connect,
		"chdb_close_conn":                  &l.closeConn,
		"chdb_query_with_params_n":         &l.query,
		"chdb_stream_query_with_params_n":  &l.streamQuery,
		"chdb_stream_fetch_result":         &l.streamFetch,
		"chdb_stream_cancel_query":         &l.streamStop,
		"chdb_result_buffer":               &l.resultBuffer,
		"chdb_result_length":               &l.resultLength,
		"chdb_result_error":                &l.resultError,
		"chdb_result_storage_rows_read":    &l.rowsRead,
		"chdb_result_storage_bytes_read":   &l.bytesRead,
		"chdb_result_rows_written":         &l.rowsWritten,
		"chdb_result_bytes_written":        &l.bytesWritten,
		"chdb_destroy_query_result":        &l.destroyResult,
		"chdb_stream_insert_with_params_n": &l.insertOpen,
		"chdb_stream_append":               &l.insertAppend,
		"chdb_stream_done":                 &l.insertDone,
		"chdb_stream_insert_error":         &l.insertError,
		"chdb_destroy_insert_stream":       &l.insertDestroy,
		"chdb_classify_query_n":            &l.classify,
	} {
		sym, err := purego.Dlsym(so, name)
		if err != nil {
			return nil, fmt.Errorf("engine: %s lacks %s: is it another version? %w", path, name, err)
		}
		purego.RegisterFunc(fn, sym)
	}
	return l, nil
}

// text is a string as the library takes it: pointer and length.
func text(s string) (unsafe.Pointer, uintptr) {
	if s == "" {
		return unsafe.Pointer(&empty), 0
	}
	return unsafe.Pointer(unsafe.StringData(s)), uintptr(len(s))
}

var empty byte // something to point at; never written

// texts is an array of strings as the library takes it: pointers and lengths.
type texts struct {
	data []unsafe.Pointer
	size []uintptr
}

func textsOf(params []Param, pick func(Param) string) texts {
	var t texts
	for _, p := range params {
		data, size := text(pick(p))
		t.data, t.size = append(t.data, data), append(t.size, size)
	}
	return t
}

func (t texts) pointers() (data, size unsafe.Pointer) {
	if len(t.data) == 0 {
		return nil, nil
	}
	return unsafe.Pointer(&t.data[0]), unsafe.Pointer(&t.size[0])
}
