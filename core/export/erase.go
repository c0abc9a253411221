package export

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
)

// Session names a conversation of a tenant.
type Session struct {
	Tenant string `json:"tenant"`
	ID     string `json:"id"`
}

// Key is the hash by which an erased session is remembered, in hex: SHA-256 of the tenant, a
// zero byte and the id.
func (s Session) Key() string {
	sum := sha256.Sum256([]byte(s.Tenant + "\x00" + s.ID))
	return hex.EncodeToString(sum[:])
}

// Selection selects sessions: those with one of the ids, of the user, or with a message that
// matches.
type Selection struct {
	IDs   []string
	Begin string // of the ids
	User  string
	Match string // RE2
}

// Erasure names the sessions that an Eraser erases.
type Erasure struct {
	Sessions []Session `json:"sessions"`
	// Match selects dead letters of no session; RE2, empty: none.
	Match string `json:"match,omitempty"`
	// Hours are the hours whose counts change, Unix seconds by table: rows that are gone do not
	// name them any more when an erasure goes on after a crash.
	Hours map[string][]int64 `json:"hours,omitempty"`
	// Save makes Hours durable.
	Save func() error `json:"-"`
}

// TableRows is how many rows of a table belong to an erasure.
type TableRows struct {
	Table string `json:"table"`
	Rows  uint64 `json:"rows"`
}

// Erasable is an exporter that can erase rows that it stored.
type Erasable interface {
	Eraser() Eraser
}

// Eraser erases rows that an exporter stored.
type Eraser interface {
	// Find returns the stored sessions that are selected.
	Find(ctx context.Context, s Selection) ([]Session, error)
	// Count returns the rows that Erase would remove.
	Count(ctx context.Context, e *Erasure) ([]TableRows, error)
	// Texts returns pieces of the sessions' texts that no other session has, to be looked for
	// when they are erased.
	Texts(ctx context.Context, e *Erasure) ([]string, error)
	// Erase removes the rows and their bytes. It can be repeated.
	Erase(ctx context.Context, e *Erasure) error
}

// Searchable reports whether an id is long enough to be looked for in other text.
func Searchable(id string) bool { return len(id) >= 8 }
