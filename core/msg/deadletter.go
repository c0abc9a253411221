package msg

// DeadLetter is input, or a row, that could not be decoded or stored. Its bytes are kept so
// that it can be tried again after an upgrade.
type DeadLetter struct {
	ID      ID
	Tenant  string
	Source  string
	Format  string
	Session string // where it is known
	Stage   string // read, decode, export
	Reason  string // a Reason code
	Detail  string // for a person
	Origin  string // file path, URL
	Offset  int64  // where in Origin the bytes begin
	Payload []byte // the bytes, cut at the configured limit
	Bytes   int64  // how many there were
	Seen    int64  // ns; when it was quarantined
	Ver     uint64
	// Resolved is set when a later try succeeded.
	Resolved bool
}

// NewDeadLetterID returns the id of the dead letter for that place: the same bytes at the
// same place are one dead letter however often they are replayed.
func NewDeadLetterID(tenant, source, stage, origin string, offset string) ID {
	s := sum("letter", tenant, source, stage, origin, offset)
	return ID(s[:16])
}

// Ledger is the ledger of one stream up to a position: every byte that was read
// was decoded, quarantined or dropped for a stated reason.
//
//	Read = Decoded + Quarantined + Dropped
type Ledger struct {
	Tenant string
	Source string
	Format string
	Stream string // the stream's identity in its source
	Origin string

	Read        int64 // bytes, and the position they reach to
	Decoded     int64
	Quarantined int64
	Dropped     int64
	Reason      string // of the last drop
	DroppedAt   int64  // when that was read, ns

	Frames   int64
	Messages int64
	Unknown  int64 // messages of kind unknown
	Problems int64

	Seen  int64 // ns
	Since int64 // when the sidecar that wrote it started to listen, ns
	Ver   uint64
}
