package opencode

import (
	"cmp"
	"encoding/json"

	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// tables are those of opencode.db: data is the JSON of a message or a part without its ids.
var tables = json.RawMessage(`{"tables":[
	{"table":"session","order":"time_created","json":["permission","model"]},
	{"table":"message","order":"time_created","json":["data"]},
	{"table":"part","order":"time_created","json":["data"]}]}`)

// members are the names that columns have in the objects.
var members = map[string]string{
	"session_id": "sessionID", "message_id": "messageID", "parent_id": "parentID", "project_id": "projectID", "workspace_id": "workspaceID",
}

// event makes the event of the server that has the same content as a row of the database; nil if
// the row is not known.
func event(root jsonv.Value) []byte {
	row, data := root.Get("row"), root.Get("row").Get("data")
	typ, object := "", "info"
	switch table := root.Get("table"); {
	case table.Equal("session") && row.Get("id").Is(jsonv.String):
		typ = "session.updated"
	case table.Equal("message") && data.Is(jsonv.Object):
		typ = "message.updated"
	case table.Equal("part") && data.Is(jsonv.Object):
		typ, object = "message.part.updated", "part"
	default:
		return nil
	}
	b := []byte(`{"type":"` + typ + `"`)
	for name, v := range root.Members() {
		if !name.Is("table") && !name.Is("row") {
			b = member(b, name.String(), v)
		}
	}
	b = append(b, `,"properties":{"`+object+`":{"time_created":`+cmp.Or(string(row.Get("time_created").Raw()), "null")...)
	for name, v := range row.Members() {
		switch column := name.String(); {
		case column == "data" && data.Is(jsonv.Object):
			for name, v := range v.Members() {
				b = member(b, name.String(), v)
			}
		case column != "time_created" && v.Exists():
			b = member(b, cmp.Or(members[column], column), v)
		}
	}
	return append(b, "}}}"...)
}

func member(b []byte, name string, v jsonv.Value) []byte {
	return append(append(jsonv.AppendQuote(append(b, ','), name), ':'), v.Raw()...)
}
