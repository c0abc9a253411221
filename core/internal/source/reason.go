package source

// The reasons with which listeners record a hole (Recording.Gap) or set a frame
// aside (frame.Frame.Reason).
const (
	// ReasonFull: traffic arrived faster than it was recorded, and the copy's buffer was
	// full. The traffic itself was not delayed.
	ReasonFull = "listener_full"
	// ReasonBroken: the connection ended in the middle of a frame.
	ReasonBroken = "connection_lost"
	// ReasonEncoding: the content encoding is unknown, or its bytes are not valid.
	ReasonEncoding = "content_encoding"
	// ReasonProtocol: bytes that the protocol does not allow; nothing after them can
	// be cut into frames.
	ReasonProtocol = "protocol_error"
	// ReasonAnswer: a server answered something other than it was asked for: the path, the headers or the format
	// may be wrong.
	ReasonAnswer = "unexpected_answer"
	// ReasonRefused: the recorder returned an error.
	ReasonRefused = "not_recorded"
)
