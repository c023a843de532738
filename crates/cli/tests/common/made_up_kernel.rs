//! Kernels that do what a test wants, a tenth of a second after they are started: the setup code
//! of a bzImage, which a boot loader runs before anything else of it.

use std::fs;
use std::path::{Path, PathBuf};

use wakescope_lab::parcel::{Item, pack};

/// What a made-up kernel does in the end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Restarts the machine.
    Restart,
    /// Goes on for ever.
    Hang,
}

/// A kernel that writes two texts, and ends.
#[derive(Clone)]
pub(crate) struct MadeUp {
    pub(crate) release: String,
    pub(crate) console: Vec<u8>,
    /// For the line of results.
    pub(crate) results: Vec<u8>,
    pub(crate) end: End,
}

/// Sectors of setup code, and where in it the banner and the texts are.
const SECTORS: u8 = 60;
const BANNER: usize = 0x500;
const ZEROS: usize = 0x5f0;
const TEXTS: usize = 0x600;
/// The code is loaded without its first sector.
const LOADED_FROM: usize = 0x200;

impl MadeUp {
    pub(crate) fn new(end: End) -> Self {
        Self { release: "9.9.9-made-up".into(), console: Vec::new(), results: Vec::new(), end }
    }

    pub(crate) fn says(text: impl Into<Vec<u8>>) -> Self {
        Self { console: text.into(), ..Self::new(End::Restart) }
    }

    pub(crate) fn sends(parcel: impl Into<Vec<u8>>) -> Self {
        Self { results: parcel.into(), ..Self::new(End::Restart) }
    }

    /// Sends what a guest would: files, and that all went well.
    pub(crate) fn sends_files(files: &[(&str, &str)]) -> Self {
        let facts = ("guest.json", r#"{"error":null,"time_up":false,"began_ns":1,"ended_ns":2}"#);
        let all = files.iter().chain([&facts]);
        let items: Vec<Item> = all.map(|(name, text)| Item::new(name, *text)).collect();
        Self::sends(pack(&items))
    }

    /// The image.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut image = self.header();
        let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
        put(BANNER, format!("{} (made@up) #1 SMP Made up", self.release).as_bytes());
        // mov ax, cs; mov ds, ax
        let mut code = vec![0x8c, 0xc8, 0x8e, 0xd8];
        let mut place = TEXTS;
        for (port, text) in [(0x3f8_u16, &self.console), (0x2f8, &self.results)] {
            if text.is_empty() {
                continue;
            }
            put(place, text);
            code.extend(write_to(port, place - LOADED_FROM, text.len()));
            place += text.len();
        }
        match self.end {
            // jmp to itself
            End::Hang => code.extend([0xeb, 0xfe]),
            // Without a table of interrupts, the first one resets the machine: lidt; int3
            End::Restart => {
                code.extend([0x0f, 0x01, 0x1e]);
                code.extend(number(ZEROS - LOADED_FROM));
                code.push(0xcc);
            }
        }
        put(0x268, &code);
        image
    }

    /// What makes it a bzImage, as the kernel's "Linux/x86 boot protocol" has it.
    fn header(&self) -> Vec<u8> {
        let mut image = vec![0; (usize::from(SECTORS) + 1) * 512 + 64];
        image[0x1f1] = SECTORS;
        image[0x1f4] = 4;
        image[0x1fe..0x200].copy_from_slice(&[0x55, 0xaa]);
        // jmp over the header
        image[0x200..0x202].copy_from_slice(&[0xeb, 0x66]);
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x206..0x208].copy_from_slice(&0x20f_u16.to_le_bytes());
        image[0x20e..0x210].copy_from_slice(&number(BANNER - LOADED_FROM));
        image[0x211] = 1;
        image[0x22c..0x230].copy_from_slice(&0x7fff_ffff_u32.to_le_bytes());
        image[0x236] = 1;
        image
    }

    /// Writes it to a file.
    pub(crate) fn write(&self, folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, self.bytes()).unwrap();
        path
    }
}

/// mov si, from; mov cx, length; mov dx, port; lodsb; out dx, al; loop
fn write_to(port: u16, from: usize, length: usize) -> Vec<u8> {
    let mut code = vec![0xbe];
    code.extend(number(from));
    code.push(0xb9);
    code.extend(number(length));
    code.push(0xba);
    code.extend(port.to_le_bytes());
    code.extend([0xac, 0xee, 0xe2, 0xfc]);
    code
}

fn number(n: usize) -> [u8; 2] {
    u16::try_from(n).expect("the texts are too long").to_le_bytes()
}
