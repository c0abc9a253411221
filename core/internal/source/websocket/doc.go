// Package websocket is a client of a WebSocket and records the messages of the server.
//
// Each connection is a stream, unless Settings.Resume makes all connections one stream. Its
// frames are the messages that the server sends, Text or Binary, and Close when the server
// closed the connection by the protocol. The messages that the client sends after connecting
// are configuration and not recorded.
//
// The client reconnects for ever, after a pause that grows from one second to thirty with
// every failure, half of it random, or that the server requests (Retry-After). A connection that received a message is no failure,
// however it ended. The client pings the server and closes a connection whose server sends no byte from
// then on. It reads messages only as fast as the recorder accepts them, so a recorder without
// room delays the server and no memory fills.
//
// Of a message longer than the limit the head is recorded with a Reason, and the connection
// continues.
package websocket
