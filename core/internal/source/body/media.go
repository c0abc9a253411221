package body

import (
	"mime"
	"strings"
)

// Shape is how the bytes of a body are cut into frames.
type Shape uint8

// The shapes.
const (
	Opaque   Shape = iota // of a type that no decoder reads: HTML, an image
	Events                // server-sent events
	Lines                 // JSON texts, one on each line
	Document              // one JSON text
	Messages              // binary messages of AWS
)

// ShapeOf returns the shape of bodies of that content type.
func ShapeOf(contentType string) Shape {
	switch media := Media(contentType); media {
	case "text/event-stream":
		return Events
	case "application/vnd.amazon.eventstream":
		return Messages
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonl", "application/jsonlines",
		"application/x-jsonlines", "application/json-lines", "application/stream+json", "application/jsonstream", "text/x-ndjson":
		return Lines
	case "application/json", "text/json":
		return Document
	default:
		if strings.HasSuffix(media, "+json") {
			return Document
		}
		return Opaque
	}
}

// Media returns the media type of a content type: lower case, without parameters.
func Media(contentType string) string {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil { // a bad parameter does not make it another type
		media, _, _ = strings.Cut(contentType, ";")
		media = strings.ToLower(strings.TrimSpace(media))
	}
	return media
}
