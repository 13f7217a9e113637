#!/bin/sh
# Makes a CA and a certificate of the site in a folder, unless they are there.
set -eu
cd "$1"
if [ -s server.crt ]; then exit 0; fi
name=sluice.localhost
openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -keyout ca.key -out ca.crt -subj '/CN=Sluice for trying things'
openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj "/CN=$name"
printf 'subjectAltName=DNS:%s,IP:127.0.0.1\n' "$name" >extensions
openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 825 -extfile extensions -out made.crt
rm -f server.csr extensions
mv made.crt server.crt
chmod 0644 ca.crt server.crt
chmod 0600 ca.key server.key
