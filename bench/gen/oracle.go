package gen

import (
	"crypto/md5"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// Oracle is the expected content of the tables.
type Oracle struct {
	Options  Options            `json:"options"`
	Total    Account            `json:"total"`
	Sessions map[string]Account `json:"sessions"`
}

// WriteTo writes the oracle as JSON.
func (o *Oracle) WriteTo(w io.Writer) (int64, error) {
	b, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return 0, err
	}
	n, err := w.Write(append(b, '\n'))
	return int64(n), err
}

// Account counts the generated traffic.
type Account struct {
	Lines  int   `json:"lines"` // blank and broken ones included
	Bytes  int64 `json:"bytes"`
	Blank  int   `json:"blank"`
	Broken int   `json:"broken"` // so many problems

	Messages int            `json:"messages"` // rows in messages
	Kinds    map[string]int `json:"kinds"`
	Errors   int            `json:"errors"` // messages with is_error

	Runs        int `json:"runs"`       // turns and sub-agents
	ToolCalls   int `json:"tool_calls"` // distinct calls, delegations included
	Delegations int `json:"delegations"`
	OpenCalls   int `json:"open_calls"` // of the calls: those without a result

	Input      uint64 `json:"input_tokens"`
	Output     uint64 `json:"output_tokens"`
	CacheRead  uint64 `json:"cache_read_tokens"`
	CacheWrite uint64 `json:"cache_write_tokens"`
	Reasoning  uint64 `json:"reasoning_tokens"`

	ContentBytes int64  `json:"content_bytes"`
	ContentSum   uint64 `json:"content_sum,string"` // the sum of Sum over every content that is not empty
}

// Sum hashes a content as ClickHouse's halfMD5 does.
func Sum(content []byte) uint64 {
	h := md5.Sum(content)
	return binary.BigEndian.Uint64(h[:8])
}

// Message counts one message.
func (a *Account) Message(kind string, content []byte) {
	if a.Kinds == nil {
		a.Kinds = make(map[string]int)
	}
	a.Messages++
	a.Kinds[kind]++
	if len(content) > 0 {
		a.ContentBytes += int64(len(content))
		a.ContentSum += Sum(content)
	}
}

// Tokens counts the tokens of a usage message.
func (a *Account) Tokens(input, output, cacheRead, cacheWrite, reasoning uint64) {
	a.Input += input
	a.Output += output
	a.CacheRead += cacheRead
	a.CacheWrite += cacheWrite
	a.Reasoning += reasoning
}

// Add adds another account.
func (a *Account) Add(b Account) {
	for k, n := range b.Kinds {
		if a.Kinds == nil {
			a.Kinds = make(map[string]int)
		}
		a.Kinds[k] += n
	}
	a.Lines += b.Lines
	a.Bytes += b.Bytes
	a.Blank += b.Blank
	a.Broken += b.Broken
	a.Messages += b.Messages
	a.Errors += b.Errors
	a.Runs += b.Runs
	a.ToolCalls += b.ToolCalls
	a.Delegations += b.Delegations
	a.OpenCalls += b.OpenCalls
	a.Tokens(b.Input, b.Output, b.CacheRead, b.CacheWrite, b.Reasoning)
	a.ContentBytes += b.ContentBytes
	a.ContentSum += b.ContentSum
}

func (a Account) String() string {
	return fmt.Sprintf("%d lines, %d bytes: %d messages, %d calls, %d runs", a.Lines, a.Bytes, a.Messages, a.ToolCalls, a.Runs)
}
