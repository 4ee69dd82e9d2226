// Serves its profiles: serves_profiles FILE [FOLDER [busy]]. Writes its port into FILE, and then a line each time that its
// CPU profile was fetched, which is the last one of a round.
//
// After the first round it does a known amount of work: drop() makes 100 objects of 4 KiB, wait() waits 200 ms for a channel, and
// in contend() another goroutine waits 100 ms for a lock. hold() has 50 objects of 8 KiB from the start, and 7 goroutines wait in
// park(). With "busy", a goroutine uses a CPU: most() three times as long as least().
//
// With FOLDER, it is also the API of Kubernetes (HTTPS): it sends FOLDER/pods.json to a client with the token "secret". It
// writes its certificate to FOLDER/ca.pem, and then its port to FOLDER/api.
//
// These paths give wrong answers: /redirect, /endless, /garbage, /silent and /bomb.
package main

import (
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"
)

var held [50][]byte
var bomb sync.Once
var packed bytes.Buffer

//go:noinline
func hold() {
	for i := range held {
		held[i] = make([]byte, 8192)
	}
}

var sum uint64

//go:noinline
func turn(rounds uint64) {
	for i := uint64(0); i < rounds; i++ {
		sum = sum*31 + i
	}
}

//go:noinline
func most() { turn(3000000) }

//go:noinline
func least() { turn(1000000) }

func work() {
	for {
		most()
		least()
	}
}

func hostile(answer http.ResponseWriter, request *http.Request) {
	switch strings.Split(request.URL.Path, "/")[1] {
	case "redirect":
		http.Redirect(answer, request, "/debug/pprof/heap", http.StatusFound)
	case "endless":
		for part := make([]byte, 1<<20); ; {
			if _, err := answer.Write(part); err != nil {
				return
			}
		}
	case "garbage":
		fmt.Fprint(answer, "this is no profile")
	case "bomb":
		bomb.Do(func() {
			writer, _ := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
			for part, i := make([]byte, 1<<20), 0; i < 600; i++ {
				writer.Write(part)
			}
			writer.Close()
		})
		answer.Write(packed.Bytes())
	case "silent":
		<-request.Context().Done()
	default:
		http.NotFound(answer, request)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func serveAPI(folder string) {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	certificate := must(x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key))
	os.WriteFile(folder+"/ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}), 0o644)
	serve := http.NewServeMux()
	serve.HandleFunc("/api/v1/pods", func(answer http.ResponseWriter, request *http.Request) {
		if request.Header.Get("Authorization") != "Bearer secret" {
			http.Error(answer, "who are you?", http.StatusForbidden)
			return
		}
		answer.Write(must(os.ReadFile(folder + "/pods.json")))
	})
	config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}}
	listener := must(tls.Listen("tcp", "127.0.0.1:0", config))
	os.WriteFile(folder+"/api.new", []byte(fmt.Sprint(listener.Addr().(*net.TCPAddr).Port)), 0o644)
	os.Rename(folder+"/api.new", folder+"/api")
	go http.Serve(listener, serve)
}

func main() {
	runtime.MemProfileRate = 1
	runtime.SetBlockProfileRate(1)
	runtime.SetMutexProfileFraction(1)
	hold()
	var started sync.WaitGroup
	for i := 0; i < 7; i++ {
		started.Add(1)
		go park(&started, make(chan bool))
	}
	started.Wait()
	if len(os.Args) > 2 {
		serveAPI(os.Args[2])
	}
	if len(os.Args) > 3 {
		go work()
	}
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	say := func(line string) {
		file, err := os.OpenFile(os.Args[1], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			panic(err)
		}
		fmt.Fprintln(file, line)
		file.Close()
	}
	say(fmt.Sprint(listener.Addr().(*net.TCPAddr).Port))
	var once sync.Once
	serve := http.NewServeMux()
	serve.HandleFunc("/debug/pprof/", pprof.Index)
	serve.HandleFunc("/debug/pprof/profile", func(answer http.ResponseWriter, request *http.Request) {
		pprof.Profile(answer, request)
		once.Do(func() {
			drop(100)
			wait()
			contend()
			// The profile shows new memory only after two collections.
			runtime.GC()
			runtime.GC()
		})
		say("round")
	})
	serve.HandleFunc("/", hostile)
	http.Serve(listener, serve)
}
